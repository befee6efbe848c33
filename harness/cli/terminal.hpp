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

constexpr std::string_view bold_begins = "\x1b[1m", bold_ends = "\x1b[0m";
// The text in bold if standard output is a terminal and NO_COLOR is not set (no-color.org).
std::string bold(const std::string& text);

// Breaks lines between words, at most `width` characters each. Later lines begin with `indent` spaces. The first line
// is taken to begin at column `column`. Line breaks of the text stay.
std::string wrapped(const std::string& text, size_t width, size_t indent, size_t column = 0);

}  // namespace attnbench
