// The header of a GGUF file: where each metadata value and each tensor lies. Nothing is decoded yet.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/inputs/checkpoint/gguf_blocks.hpp"

namespace attnbench {

// As the file writes them.
enum class GgufValueType : std::uint32_t {
  uint8,
  int8,
  uint16,
  int16,
  uint32,
  int32,
  float32,
  truth,
  text,
  array,
  uint64,
  int64,
  float64
};

struct GgufValue {
  GgufValueType type;
  std::span<const unsigned char> bytes;  // for an array: its elements, one after the other
  GgufValueType element = {};            // the next two are set for arrays
  std::uint64_t count = 0;
};

struct GgufTensor {
  const GgufType* type;                  // never nullptr
  std::vector<Index> shape;              // row-major, the slowest axis first: GGUF writes the axes in reverse
  Index count;                           // product of the shape
  std::span<const unsigned char> bytes;  // whole blocks
};

struct GgufHeader {
  std::map<std::string, GgufValue> metadata;
  std::map<std::string, GgufTensor> tensors;
};

// The header of a file with these bytes, which the spans of the result point into. Throws Misuse, which begins with
// `file` and says what is wrong, where, and what was expected. Allocates at most a constant times the number of bytes.
GgufHeader read_gguf_header(std::span<const unsigned char> bytes, const std::string& file);

// Bytes of a number or truth value; 0 for text and arrays.
size_t gguf_width(GgufValueType type);
// "uint8", "string", "array of int32": GGUF's own names.
std::string gguf_name(GgufValueType type);
std::string gguf_name(const GgufValue& value);

}  // namespace attnbench
