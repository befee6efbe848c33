#include "harness/cli/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace attnbench {

namespace {

// A positive integer in an environment variable; 0 if it holds none.
size_t number_of(const char* variable) {
  const char* text = std::getenv(variable);
  if (!text) return 0;
  const std::string_view digits(text);
  size_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc() && end == digits.data() + digits.size() ? number : 0;
}

winsize window() {
  winsize size{};
  if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return {};
  return size;
}

// A narrower terminal gets lines of this width, which it breaks itself.
constexpr size_t least_width = 40, least_lines = 10;

}  // namespace

size_t terminal_width() {
  if (const size_t given = number_of("COLUMNS")) return std::max(least_width, given);
  const size_t columns = window().ws_col;
  return columns ? std::max(least_width, columns) : 100;
}

size_t terminal_lines() {
  if (const size_t given = number_of("LINES")) return std::max(least_lines, given);
  const size_t rows = window().ws_row;
  return rows ? std::max(least_lines, rows) : 40;
}

size_t text_width() {
  return isatty(STDOUT_FILENO) != 0 || number_of("COLUMNS") ? terminal_width() : std::string::npos;
}

std::string bold(const std::string& text) {
  const char *no_colour = std::getenv("NO_COLOR"), *kind = std::getenv("TERM");
  const bool plain = isatty(STDOUT_FILENO) == 0 || (no_colour && *no_colour) || (kind && kind == std::string("dumb"));
  return plain ? text : std::string(bold_begins) + text + std::string(bold_ends);
}

std::string wrapped(const std::string& text, size_t width, size_t indent, size_t column) {
  std::string lines;
  for (size_t begin = 0; begin < text.size();) {
    if (text[begin] == '\n') {
      lines += "\n" + std::string(indent, ' ');
      column = indent;
      ++begin;
      continue;
    }
    const size_t end = std::min(text.find_first_of(" \n", begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    const bool first = lines.empty() || column == indent;
    if (!first && column + 1 + word.size() > width) {
      lines += "\n" + std::string(indent, ' ') + word;
      column = indent + word.size();
    } else {
      lines += (first ? "" : " ") + word;
      column += (first ? 0 : 1) + word.size();
    }
    begin = end + (end < text.size() && text[end] == ' ');
  }
  return lines;
}

}  // namespace attnbench
