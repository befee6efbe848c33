#include "harness/cli/printable_output.hpp"

#include <algorithm>
#include <ostream>
#include <string_view>

#include "harness/cli/terminal.hpp"
#include "harness/errors/printable.hpp"

namespace attnbench {

namespace {

// The end of the style that the text begins with; 0 if it begins with none.
size_t end_of_style(std::string_view text) {
  if (text.starts_with(style_ends)) return style_ends.size();
  for (const std::string_view style : style_begins)
    if (text.starts_with(style)) return style.size();
  return 0;
}

// Commands print styles, which harm no terminal. Where they print none, none passes: it would be of a file's text.
class Filter final : public std::streambuf {
 public:
  explicit Filter(std::streambuf& sink) : sink_(sink) {}

 private:
  int_type overflow(int_type c) override {
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    const char one = traits_type::to_char_type(c);
    return xsputn(&one, 1) == 1 ? c : traits_type::eof();
  }
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    std::string shown;
    for (std::string_view rest(text, static_cast<size_t>(size)); !rest.empty();) {
      const size_t style = styles_ ? end_of_style(rest) : 0,
                   end = style ? style : std::min(rest.find('\x1b', 1), rest.size());
      shown += style ? std::string(rest.substr(0, style)) : printable(rest.substr(0, end));
      rest.remove_prefix(end);
    }
    const auto length = static_cast<std::streamsize>(shown.size());
    return sink_.sputn(shown.data(), length) == length ? size : 0;
  }
  int sync() override { return sink_.pubsync(); }

  std::streambuf& sink_;
  bool styles_ = shows_styles();
};

}  // namespace

PrintableOutput::PrintableOutput(std::ostream& stream)
    : stream_(stream), own_(stream.rdbuf()), filter_(std::make_unique<Filter>(*own_)) {
  stream_.rdbuf(filter_.get());
}

PrintableOutput::~PrintableOutput() { stream_.rdbuf(own_); }

}  // namespace attnbench
