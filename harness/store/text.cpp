#include "harness/store/text.hpp"

#include <algorithm>

namespace attnbench {

namespace {

bool between(int byte, int low, int high) { return low <= byte && byte <= high; }

// The length of the character that begins `bytes`, which is not empty; 0 if they do not begin with one (The Unicode
// Standard, table 3-7).
size_t character_length(std::string_view bytes) {
  const auto at = [&](size_t i) { return i < bytes.size() ? int{static_cast<unsigned char>(bytes[i])} : 0; };
  const auto continued = [&](size_t from, size_t to) {
    for (size_t i = from; i < to; ++i)
      if (!between(at(i), 0x80, 0xbf)) return false;
    return true;
  };
  const int first = at(0), second = at(1);
  if (between(first, 0x01, 0x7f)) return 1;
  if (between(first, 0xc2, 0xdf)) return continued(1, 2) ? 2 : 0;
  if (between(first, 0xe0, 0xef)) {
    const bool allowed = between(second, first == 0xe0 ? 0xa0 : 0x80, first == 0xed ? 0x9f : 0xbf);
    return allowed && continued(2, 3) ? 3 : 0;
  }
  if (between(first, 0xf0, 0xf4)) {
    const bool allowed = between(second, first == 0xf0 ? 0x90 : 0x80, first == 0xf4 ? 0x8f : 0xbf);
    return allowed && continued(2, 4) ? 4 : 0;
  }
  return 0;
}

}  // namespace

bool is_text(std::string_view bytes) {
  // Nearly every character of a results file. Signed, since a char of AArch64 has no sign.
  const auto plain = [](char c) { return static_cast<signed char>(c) > 0; };
  while (true) {
    bytes.remove_prefix(static_cast<size_t>(std::ranges::find_if_not(bytes, plain) - bytes.begin()));
    if (bytes.empty()) return true;
    const size_t length = character_length(bytes);
    if (length == 0) return false;
    bytes.remove_prefix(length);
  }
}

std::string as_text(std::string_view bytes) {
  if (is_text(bytes)) return std::string(bytes);
  std::string text;
  while (!bytes.empty()) {
    const size_t length = character_length(bytes);
    text += length == 0 ? std::string_view("\xef\xbf\xbd") : bytes.substr(0, length);
    bytes.remove_prefix(std::max<size_t>(length, 1));
  }
  return text;
}

std::string on_one_line(std::string_view bytes) {
  std::string line = as_text(bytes);
  std::ranges::replace_if(
      line, [](char c) { return between(static_cast<unsigned char>(c), 0, 0x1f) || c == '\x7f'; }, '?');
  return line;
}

std::string shell_quoted(const std::string& word) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=:,./+@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

}  // namespace attnbench
