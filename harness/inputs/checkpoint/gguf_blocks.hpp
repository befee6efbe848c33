// The tensor types of GGUF files, which are those of ggml, and the numbers in their blocks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

struct GgufType {
  std::string_view name;
  std::uint32_t code;  // in a file
  Index numbers;       // per block; 0: ggml has removed the type
  Index bytes;         // per block
  // Writes the numbers of whole blocks; nullptr: attnbench knows the size of the type only.
  void (*dequantise)(std::span<const unsigned char> blocks, float* out) = nullptr;
};

// nullptr if ggml has no type of that code.
const GgufType* gguf_type(std::uint32_t code);

// "F32, F16, ...": the types that can be dequantised.
std::string dequantised_gguf_types();

}  // namespace attnbench
