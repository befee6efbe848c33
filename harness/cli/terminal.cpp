#include "harness/cli/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iostream>
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

winsize window(int stream) {
  winsize size{};
  if (isatty(stream) == 0 || ioctl(stream, TIOCGWINSZ, &size) != 0) return {};
  return size;
}

// Columns that a word takes on a terminal: bytes that begin a character, without those of styles.
size_t columns_of(std::string_view word) {
  size_t columns = 0;
  for (size_t i = 0; i < word.size(); ++i) {
    if (word[i] == '\x1b')
      i = std::min(word.find('m', i), word.size());
    else
      columns += (static_cast<unsigned char>(word[i]) & 0xC0) != 0x80;
  }
  return columns;
}

// A narrower terminal gets lines of this width, which it breaks itself.
constexpr size_t least_width = 40, least_lines = 10;

}  // namespace

size_t terminal_width() {
  if (const size_t given = number_of("COLUMNS")) return std::max(least_width, given);
  const size_t columns = window(STDOUT_FILENO).ws_col;
  return columns ? std::max(least_width, columns) : 100;
}

size_t terminal_lines() {
  if (const size_t given = number_of("LINES")) return std::max(least_lines, given);
  const size_t rows = window(STDOUT_FILENO).ws_row;
  return rows ? std::max(least_lines, rows) : 40;
}

size_t text_width() { return isatty(STDOUT_FILENO) != 0 ? terminal_width() : std::string::npos; }

bool shows_styles() {
  const char *no_colour = std::getenv("NO_COLOR"), *kind = std::getenv("TERM");
  return isatty(STDOUT_FILENO) != 0 && !(no_colour && *no_colour) && !(kind && kind == std::string("dumb"));
}

std::string styled(Style style, const std::string& text) {
  if (!shows_styles()) return text;
  return std::string(style_begins[static_cast<size_t>(style)]) + text + std::string(style_ends);
}

std::string bold(const std::string& text) { return styled(Style::bold, text); }

std::string wrapped(const std::string& text, size_t width, size_t indent, size_t column) {
  std::string lines;
  bool begins = true;  // nothing is on this line yet
  for (size_t begin = 0; begin < text.size();) {
    if (text[begin] == '\n') {
      lines += "\n" + std::string(indent, ' ');
      column = indent;
      begins = true;
      ++begin;
      continue;
    }
    const size_t end = std::min(text.find_first_of(" \n", begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    const size_t size = columns_of(word);
    if (!begins && column + 1 + size > width) {
      lines.erase(lines.find_last_not_of(' ') + 1);
      lines += "\n" + std::string(indent, ' ') + word;
      column = indent + size;
      begins = word.empty();
    } else {
      lines += (begins ? "" : " ") + word;
      column += (begins ? 0 : 1) + size;
      begins = begins && word.empty();
    }
    begin = end + (end < text.size() && text[end] == ' ');
  }
  return lines;
}

std::string wrapped_lines(const std::string& text, size_t width, size_t indent) {
  std::string all;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    const size_t margin = std::min(line.find_first_not_of(' '), line.size());
    all += line.substr(0, margin) + wrapped(line.substr(margin), width, indent, margin);
    if (end < text.size()) all += '\n';
    begin = end + 1;
  }
  return all;
}

void print_message(const std::string& message) {
  const size_t columns = window(STDERR_FILENO).ws_col;
  const size_t width = isatty(STDERR_FILENO) == 0 ? std::string::npos : std::max(least_width, columns ? columns : 100);
  std::cerr << wrapped("attnbench: " + message, width, 2) << "\n";
}

}  // namespace attnbench
