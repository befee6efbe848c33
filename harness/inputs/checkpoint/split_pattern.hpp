// Regular expressions of tokenisers. Hugging Face's `tokenizers` runs them with Oniguruma (its Ruby syntax); here PCRE2
// runs them. The two read some syntax differently, so a pattern is translated, and anything else is refused by name:
//   \s, \S        the 25 characters with the property White_Space; PCRE2's \s has U+180E as well
//   \p{Han}       Script=Han; PCRE2's own \p{Han} is Script_Extensions
//   refused       \w \b \h \v ^ $, classes within classes, {,n}, {n}+, {n}?, named groups, back references
// One difference is left: under (?i:...) Oniguruma also lets "ss", "ff" or "st" match one character, such as U+00DF.
// Unicode: Debian 12's PCRE2 10.42 knows Unicode 14, `tokenizers` 0.23 knows 16 (17 for single digits). For every
// character that Unicode 14 assigns, \p{L}, \p{N} and \s agree; later letters and digits count as neither here.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace attnbench {

// The pattern as PCRE2 reads it. Throws Misuse, which names `where`, if a part of it is not understood.
std::string translated_pattern(std::string_view pattern, const std::string& where);

class SplitPattern {
 public:
  // literal: the text itself, not a regular expression. Throws Misuse if the pattern is no regular expression, is not
  // understood or can match the empty text.
  SplitPattern(std::string_view pattern, bool literal, const std::string& where);

  struct Match {
    size_t begin, end;
  };
  // Finds matches in texts. One thread uses it at a time; several may share the pattern.
  class Finder {
   public:
    explicit Finder(const SplitPattern& pattern);
    Finder(Finder&&) noexcept;
    ~Finder();
    // The first match at or after the byte `from`. The text must be valid UTF-8, `from` at a character's beginning.
    // Throws Misuse if the pattern needs more than the limit of steps.
    std::optional<Match> next(std::string_view text, size_t from);

   private:
    struct State;
    std::unique_ptr<State> state_;
  };

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace attnbench
