// The texts that a results file may hold: UTF-8 without the character NUL, which ends a string in C; and command lines,
// which it holds as a shell reads them.
#pragma once

#include <string>
#include <string_view>

namespace attnbench {

bool is_text(std::string_view bytes);

// The bytes with U+FFFD in place of each one that no UTF-8 character includes. A path, or the last line that a worker
// printed, may hold such bytes.
std::string as_text(std::string_view bytes);

// as_text with ? in place of control characters, for a message of one line.
std::string on_one_line(std::string_view bytes);

// The word as a shell reads it back.
std::string shell_quoted(const std::string& word);

}  // namespace attnbench
