// Numbers in the bytes of a little-endian file.
#pragma once

#include <bit>
#include <cstring>

namespace attnbench {

static_assert(std::endian::native == std::endian::little, "files are read as they lie in memory");

// The number of type T in the first sizeof(T) bytes, which need no alignment.
template <class T>
T little_endian(const unsigned char* bytes) {
  T number;
  std::memcpy(&number, bytes, sizeof(T));
  return number;
}

}  // namespace attnbench
