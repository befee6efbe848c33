// The terminal that standard output goes to: its size, colours, and text that fits it.
#pragma once

#include <string>
#include <string_view>

namespace attnbench {

// Characters of a line and lines of the screen: COLUMNS and LINES, or those of the terminal; 100 and 40 without one.
size_t terminal_width();
size_t terminal_lines();
// Characters of a line of text that other programs may read line by line: without a terminal nothing is broken.
size_t text_width();

enum class Style { bold, red, green, yellow };
constexpr std::string_view style_begins[] = {"\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[33m"}, style_ends = "\x1b[0m";
// Whether standard output is a terminal that shows styles, and NO_COLOR is not set (no-color.org).
bool shows_styles();
// The text in that style if it is shown.
std::string styled(Style style, const std::string& text);
std::string bold(const std::string& text);

// Breaks lines between words, at most `width` characters each. Later lines begin with `indent` spaces. The first line
// is taken to begin at column `column`. Line breaks of the text stay. Styles take no room.
std::string wrapped(const std::string& text, size_t width, size_t indent, size_t column = 0);
// The same for each line of a text that is laid out: the spaces at the beginning of a line stay.
std::string wrapped_lines(const std::string& text, size_t width, size_t indent);

// Prints "attnbench: " and the message on standard error, on one line or as wide as the terminal that shows it.
void print_message(const std::string& message);

}  // namespace attnbench
