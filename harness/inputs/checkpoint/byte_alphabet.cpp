#include "harness/inputs/checkpoint/byte_alphabet.hpp"

#include <array>
#include <map>

namespace attnbench {

namespace {

bool stands_for_itself(unsigned byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || (byte >= 174 && byte <= 255);
}

struct Alphabet {
  std::array<std::string, 256> characters;
  std::map<std::string, char, std::less<>> bytes;

  Alphabet() {
    unsigned others = 0;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const unsigned code = stands_for_itself(byte) ? byte : 256 + others++;
      std::string& text = characters[byte];
      if (code < 0x80) {
        text = static_cast<char>(code);
      } else {  // all are below 0x800, so two bytes of UTF-8
        text = {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
      }
      bytes[text] = static_cast<char>(byte);
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet made;
  return made;
}

}  // namespace

std::string character_of_byte(unsigned char byte) { return alphabet().characters[byte]; }

std::optional<std::string> bytes_of_characters(std::string_view text) {
  const auto& bytes = alphabet().bytes;
  std::string result;
  while (!text.empty()) {
    const size_t length = static_cast<unsigned char>(text[0]) < 0x80 ? 1 : 2;
    const auto found = bytes.find(text.substr(0, length));
    if (found == bytes.end()) return std::nullopt;
    result += found->second;
    text.remove_prefix(length);
  }
  return result;
}

}  // namespace attnbench
