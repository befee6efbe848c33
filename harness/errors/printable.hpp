// Texts from outside (names of plugins, files, errors of a method) on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace attnbench {

// The text with each control character except newline and tab shown as in \x1b: such characters move the cursor, change
// the title or run commands of a terminal.
std::string printable(std::string_view text);

}  // namespace attnbench
