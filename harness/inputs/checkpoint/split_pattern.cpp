#define PCRE2_CODE_UNIT_WIDTH 8
#include "harness/inputs/checkpoint/split_pattern.hpp"

#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <cctype>

#include "harness/errors/error.hpp"
#include "harness/inputs/tensor_formats.hpp"

namespace attnbench {

namespace {

constexpr size_t longest_pattern = 10'000;       // the longest that a published tokeniser has takes 1,500 bytes
constexpr std::uint32_t most_steps = 1'000'000;  // for one match, after which PCRE2 gives up
constexpr size_t jit_stack = 1 << 20;            // bytes; the default of 32 kB ends in groups repeated over long pieces
constexpr std::string_view white_space = R"(\t-\r\x{20}\x{85}\x{A0}\x{1680}\p{Zs}\p{Zl}\p{Zp})";

constexpr std::string_view what_works =
    R"(characters, [classes], \s, \S, \d, \D, \p{..}, \P{..}, \r, \n, \t, \f, \uHHHH, ., |, (?:..), (?i:..), (?>..), )"
    R"((..), lookaround, ?, *, +, {n}, {n,} and {n,m})";

class PatternTranslator {
 public:
  PatternTranslator(std::string_view pattern, const std::string& where) : rest_(pattern), where_(where) {}

  std::string run() {
    while (!rest_.empty()) {
      switch (rest_[0]) {
        case '\\':
          result_ += escape(false);
          break;
        case '[':
          character_class();
          break;
        case '(':
          group();
          break;
        case '{':
          repetition();
          break;
        case '^':
        case '$':
          refuse(rest_.substr(0, 1));
        default:
          take(1);
      }
    }
    return result_;
  }

 private:
  [[noreturn]] void refuse(std::string_view part) const {
    throw Misuse(
        fmt::format("{}: the pattern has '{}', which is not understood; expected {}", where_, shown(part), what_works));
  }
  void take(size_t count) {
    result_ += rest_.substr(0, count);
    rest_.remove_prefix(count);
  }

  // Reads an escape and returns it as PCRE2 writes it.
  std::string escape(bool in_class) {
    if (rest_.size() < 2) refuse(rest_);
    const char letter = rest_[1];
    const bool named = letter == 'p' || letter == 'P';
    if (named) return property();
    if (letter == 'u') return code_point();
    const std::string_view both = rest_.substr(0, 2);
    rest_.remove_prefix(2);
    if (letter == 's') return in_class ? std::string(white_space) : fmt::format("[{}]", white_space);
    if (letter == 'S' && !in_class) return fmt::format("[^{}]", white_space);
    const bool punctuation = letter > ' ' && letter <= '~' && !std::isalnum(static_cast<unsigned char>(letter));
    if (!punctuation && std::string_view("dDrntf ").find(letter) == std::string_view::npos) refuse(both);
    return std::string(both);
  }

  std::string property() {
    const size_t close = rest_.find('}');
    if (rest_.size() < 3 || rest_[2] != '{' || close == std::string_view::npos) refuse(rest_.substr(0, 3));
    const std::string_view all = rest_.substr(0, close + 1);
    const std::string_view name = all.substr(3, close - 3);
    const auto letters = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; };
    if (name.empty() || !std::all_of(name.begin(), name.end(), letters)) refuse(all);
    rest_.remove_prefix(close + 1);
    // One letter or two: a general category. PCRE2 knows scripts by longer names, and refuses other names.
    return name.size() <= 2 ? std::string(all) : fmt::format("\\{}{{sc:{}}}", all[1], name);
  }

  std::string code_point() {
    const std::string_view digits = rest_.size() < 6 ? std::string_view() : rest_.substr(2, 4);
    const auto hexadecimal = [](char c) { return std::isxdigit(static_cast<unsigned char>(c)); };
    if (digits.empty() || !std::all_of(digits.begin(), digits.end(), hexadecimal)) refuse(rest_.substr(0, 6));
    rest_.remove_prefix(6);
    return fmt::format("\\x{{{}}}", digits);
  }

  void character_class() {
    const std::string_view all = rest_;
    take(rest_.size() > 1 && rest_[1] == '^' ? 2 : 1);
    if (rest_.starts_with(']')) refuse(all.substr(0, 3));  // a bracket for one of the two, an empty class for the other
    while (!rest_.starts_with(']')) {
      if (rest_.empty()) refuse(all);  // not closed
      if (rest_[0] == '[' || rest_.starts_with("&&")) refuse(all.substr(0, all.size() - rest_.size() + 2));
      if (rest_[0] == '-' && rest_.size() > 2 && rest_[1] == '\\' && std::isalpha(static_cast<unsigned char>(rest_[2])))
        refuse(rest_.substr(0, 3));  // a range up to a class
      if (rest_[0] == '\\') {
        result_ += escape(true);
      } else {
        take(1);
      }
    }
    take(1);
  }

  void group() {
    if (rest_.starts_with("(*")) refuse("(*");
    if (!rest_.starts_with("(?")) return take(1);
    for (const std::string_view form : {"(?:", "(?i:", "(?=", "(?!", "(?<=", "(?<!", "(?>"}) {
      if (rest_.starts_with(form)) return take(form.size());
    }
    refuse(rest_.substr(0, 4));
  }

  void repetition() {
    const size_t close = rest_.find('}');
    const std::string_view counts = rest_.substr(0, close + 1 == 0 ? rest_.size() : close + 1);
    const bool digits = counts.size() > 2 && std::isdigit(static_cast<unsigned char>(counts[1])) &&
                        counts.substr(1).find_first_not_of("0123456789,}") == std::string_view::npos &&
                        counts.back() == '}';
    const std::string_view after = rest_.substr(counts.size(), 1);
    if (!digits || std::count(counts.begin(), counts.end(), ',') > 1 || after == "+" || after == "?")
      refuse(rest_.substr(0, counts.size() + after.size()));
    take(counts.size());
  }

  std::string_view rest_;
  const std::string& where_;
  std::string result_;
};

std::string message_of(int error) {
  unsigned char text[256] = {};
  pcre2_get_error_message(error, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

template <class T, void (*release)(T*)>
struct Release {
  void operator()(T* held) const { release(held); }
};
template <class T, void (*release)(T*)>
using Held = std::unique_ptr<T, Release<T, release>>;

}  // namespace

std::string translated_pattern(std::string_view pattern, const std::string& where) {
  return PatternTranslator(pattern, where).run();
}

struct SplitPattern::Compiled {
  Held<pcre2_code, pcre2_code_free> code;
  std::string pattern, where;  // for messages
};

SplitPattern::SplitPattern(std::string_view pattern, bool literal, const std::string& where) {
  if (pattern.empty() || pattern.size() > longest_pattern)
    throw Misuse(fmt::format("{}: the pattern has {} bytes; expected 1 to {}", where, pattern.size(), longest_pattern));
  const std::string translated = literal ? std::string(pattern) : translated_pattern(pattern, where);
  const Held<pcre2_compile_context, pcre2_compile_context_free> context(pcre2_compile_context_create(nullptr));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  const std::uint32_t options = PCRE2_UTF | (literal ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C);
  int error = 0;
  size_t position = 0;
  Held<pcre2_code, pcre2_code_free> code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()),
                                                       translated.size(), options, &error, &position, context.get()));
  if (!code)
    throw Misuse(fmt::format("{}: the pattern '{}' is no regular expression ({}); expected one as Oniguruma reads it",
                             where, shown(pattern), message_of(error)));
  std::uint32_t matches_empty = 0;
  pcre2_pattern_info(code.get(), PCRE2_INFO_MATCHEMPTY, &matches_empty);
  if (matches_empty)
    throw Misuse(fmt::format("{}: the pattern '{}' matches the empty text; expected at least one character in a match",
                             where, shown(pattern)));
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);  // if that fails, PCRE2 interprets the pattern
  compiled_ = std::make_shared<const Compiled>(Compiled{std::move(code), std::string(pattern), where});
}

struct SplitPattern::Finder::State {
  std::shared_ptr<const Compiled> compiled;
  Held<pcre2_match_data, pcre2_match_data_free> match;
  Held<pcre2_match_context, pcre2_match_context_free> context;
  Held<pcre2_jit_stack, pcre2_jit_stack_free> stack;
};

SplitPattern::Finder::Finder(const SplitPattern& pattern)
    : state_(new State{pattern.compiled_,
                       Held<pcre2_match_data, pcre2_match_data_free>(pcre2_match_data_create(1, nullptr)),
                       Held<pcre2_match_context, pcre2_match_context_free>(pcre2_match_context_create(nullptr)),
                       Held<pcre2_jit_stack, pcre2_jit_stack_free>(pcre2_jit_stack_create(4096, jit_stack, nullptr))}) {
  pcre2_set_match_limit(state_->context.get(), most_steps);
  pcre2_jit_stack_assign(state_->context.get(), nullptr, state_->stack.get());
}
SplitPattern::Finder::Finder(Finder&&) noexcept = default;
SplitPattern::Finder::~Finder() = default;

std::optional<SplitPattern::Match> SplitPattern::Finder::next(std::string_view text, size_t from) {
  const int found = pcre2_match(state_->compiled->code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                from, PCRE2_NO_UTF_CHECK, state_->match.get(), state_->context.get());
  if (found == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (found < 0)
    throw Misuse(fmt::format(
        "{}: the pattern '{}' fails on the piece '{}' ({}); expected one that does not try so "
        "many ways: give a shorter text",
        state_->compiled->where, shown(state_->compiled->pattern), shown(text.substr(from)), message_of(found)));
  const size_t* range = pcre2_get_ovector_pointer(state_->match.get());
  return Match{range[0], range[1]};
}

}  // namespace attnbench
