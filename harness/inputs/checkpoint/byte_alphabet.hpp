// GPT-2's byte alphabet: one printable character for each byte, in which vocabularies write their tokens. Radford et
// al., "Language Models are Unsupervised Multitask Learners" (2019), bytes_to_unicode in their encoder.py.
//   bytes 33 to 126, 161 to 172 and 174 to 255   the character of the same number
//   the other 68 bytes, in order                 the characters 256, 257, ..., 323; a space is U+0120
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace attnbench {

// The character of a byte, in UTF-8.
std::string character_of_byte(unsigned char byte);

// The bytes that a token's text stands for; nullopt if a character is outside the alphabet.
std::optional<std::string> bytes_of_characters(std::string_view text);

}  // namespace attnbench
