#include "harness/inputs/npy_header.hpp"

#include <fmt/format.h>

#include <charconv>

#include "harness/errors/error.hpp"

namespace attnbench {

namespace {

class Literal {
 public:
  Literal(std::string_view text, const std::string& where) : rest_(text), text_(text), where_(where) {}

  // Skips spaces, then takes the character if it comes next.
  bool take(char c) {
    skip_spaces();
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!take(c)) refuse(fmt::format("'{}'", c));
  }
  bool take_word(std::string_view word) {
    skip_spaces();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  std::string_view quoted() {
    const char quote = take('\'') ? '\'' : '"';
    if (quote == '"' && !take('"')) refuse("a quoted word");
    const size_t end = rest_.find(quote);
    if (end == std::string_view::npos) refuse("a closing quote");
    const auto word = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return word;
  }
  Index number() {
    skip_spaces();
    Index value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc() || value < 0) refuse("a size >= 0");
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return value;
  }
  // "(3, 4)", "(3,)" or "()".
  std::vector<Index> tuple() {
    std::vector<Index> axes;
    expect('(');
    while (!take(')')) {
      if (axes.size() == most_axes) refuse(fmt::format("at most {} axes", most_axes));
      axes.push_back(number());
      if (!take(',')) {
        if (axes.size() == 1) refuse("',' after the only axis");
        expect(')');
        break;
      }
    }
    return axes;
  }
  void expect_end() {
    while (rest_.starts_with(' ')) rest_.remove_prefix(1);
    if (rest_.starts_with('\n')) rest_.remove_prefix(1);
    if (!rest_.empty()) refuse("spaces and a line end after the dictionary");
  }

  [[noreturn]] void refuse(const std::string& expected) const {
    throw Misuse(
        fmt::format("{}: the npy header '{}' is not of the form that NumPy writes; expected {} at character {}", where_,
                    shown(text_), expected, text_.size() - rest_.size()));
  }

 private:
  void skip_spaces() {
    while (rest_.starts_with(' ')) rest_.remove_prefix(1);
  }

  std::string_view rest_, text_;
  const std::string& where_;
};

void set_number_format(std::string_view descr, NpyHeader& header, const std::string& where) {
  const std::string_view kind = descr.empty() ? descr : descr.substr(1);
  if (!(descr.starts_with('<') || descr.starts_with('>')) || !(kind == "f2" || kind == "f4" || kind == "f8"))
    throw Misuse(
        fmt::format("{}: the dtype '{}' is not read; expected float16, float32 or float64 ('<f2', '<f4', "
                    "'<f8', or '>' for big endian): convert it with astype",
                    where, shown(descr)));
  header.order = descr.starts_with('<') ? std::endian::little : std::endian::big;
  header.format = kind == "f2" ? FloatFormat::float16 : kind == "f4" ? FloatFormat::float32 : FloatFormat::float64;
}

}  // namespace

NpyHeader parse_npy_header(std::string_view text, const std::string& where) {
  Literal literal(text, where);
  NpyHeader header;
  bool has_descr = false, has_order = false, has_shape = false;
  const auto once = [&](bool& seen) {
    if (seen) literal.refuse("each key once");
    seen = true;
  };
  literal.expect('{');
  while (!literal.take('}')) {
    const auto key = literal.quoted();
    literal.expect(':');
    if (key == "descr") {
      once(has_descr);
      if (literal.take('['))
        throw Misuse(fmt::format("{}: a structured dtype is not read; expected float16, float32 or float64", where));
      set_number_format(literal.quoted(), header, where);
    } else if (key == "fortran_order") {
      once(has_order);
      header.fortran_order = literal.take_word("True");
      if (!header.fortran_order && !literal.take_word("False")) literal.refuse("True or False");
    } else if (key == "shape") {
      once(has_shape);
      header.shape = literal.tuple();
    } else {
      literal.refuse("the keys descr, fortran_order and shape");
    }
    if (!literal.take(',')) {
      literal.expect('}');
      break;
    }
  }
  literal.expect_end();
  if (!has_descr || !has_order || !has_shape) literal.refuse("the keys descr, fortran_order and shape");
  return header;
}

}  // namespace attnbench
