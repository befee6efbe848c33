// Blocks of quantised numbers, little endian. d and m are float16, q is an unsigned integer, s and t are 6-bit
// integers:
//   Q4_0  d (q - 8)     32 numbers: d, 16 bytes of nibbles            Q4_1  d q + m   d, m, 16 bytes of nibbles
//   Q5_0  d (q - 16)    32 numbers: d, 32 fifth bits, nibbles         Q5_1  d q + m   d, m, 32 fifth bits, nibbles
//   Q8_0  d q           32 numbers: d, 32 signed bytes
//   Q4_K  d s q - m t   256 numbers: d, m, 12 bytes of s and t, 128 bytes of nibbles
//   Q5_K  d s q - m t   256 numbers: d, m, 12 bytes of s and t, 32 bytes of fifth bits, 128 bytes of nibbles
//   Q6_K  d s (q - 32)  256 numbers: 128 bytes of nibbles, 64 bytes of upper bits, 16 signed bytes s, d
// In blocks of 32 numbers the low nibbles are numbers 0 to 15 and the high ones 16 to 31. The K types have 8 groups of
// 32 numbers with an s and a t each (Q6_K: 16 groups of 16 with an s). A float32 holds every product exactly: 11 bits
// of a float16, 7 of s and 5 of q are at most 24 (-128 and -32 are powers of 2). A fused multiply-add thus gives the
// same bits as a multiplication and an addition, and only the addition rounds.
#include "harness/inputs/checkpoint/gguf_blocks.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "harness/inputs/checkpoint/little_endian.hpp"

namespace attnbench {

namespace {

using Byte = unsigned char;

float from_half(const Byte* bytes) {
  const std::uint32_t bits = little_endian<std::uint16_t>(bytes);
  const std::uint32_t sign = (bits & 0x8000) << 16, exponent = (bits >> 10) & 31, fraction = bits & 1023;
  if (exponent == 0) {  // zero or subnormal: fraction 2^-24
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  const std::uint32_t widened = exponent == 31 ? 255 : exponent + 127 - 15;
  return std::bit_cast<float>(sign | (widened << 23) | (fraction << 13));
}

void float32(const Byte* block, float* out) { *out = little_endian<float>(block); }
void float16(const Byte* block, float* out) { *out = from_half(block); }
void bfloat16(const Byte* block, float* out) {
  *out = std::bit_cast<float>(static_cast<std::uint32_t>(little_endian<std::uint16_t>(block)) << 16);
}

int signed_byte(Byte byte) { return static_cast<std::int8_t>(byte); }

// The nibble of number i of 32 whose high nibbles follow all low ones.
int nibble(const Byte* bytes, int i) { return (bytes[i % 16] >> (i < 16 ? 0 : 4)) & 15; }

// value(q) for the 32 numbers q of a block that is `head` bytes and 16 bytes of nibbles.
template <int head, class Value>
void from_nibbles(const Byte* block, float* out, const Value& value) {
  for (int i = 0; i < 32; ++i) out[i] = value(static_cast<float>(nibble(block + head, i)));
}

// The same with a fifth bit of each q in the last 4 bytes of the head.
template <int head, class Value>
void from_five_bits(const Byte* block, float* out, const Value& value) {
  const auto fifth = little_endian<std::uint32_t>(block + head - 4);
  for (int i = 0; i < 32; ++i)
    out[i] = value(static_cast<float>(nibble(block + head, i) + static_cast<int>((fifth >> i) & 1) * 16));
}

void q4_0(const Byte* block, float* out) {
  from_nibbles<2>(block, out, [d = from_half(block)](float q) { return d * (q - 8); });
}

void q4_1(const Byte* block, float* out) {
  from_nibbles<4>(block, out, [d = from_half(block), m = from_half(block + 2)](float q) { return d * q + m; });
}

void q5_0(const Byte* block, float* out) {
  from_five_bits<6>(block, out, [d = from_half(block)](float q) { return d * (q - 16); });
}

void q5_1(const Byte* block, float* out) {
  from_five_bits<8>(block, out, [d = from_half(block), m = from_half(block + 2)](float q) { return d * q + m; });
}

void q8_0(const Byte* block, float* out) {
  const float d = from_half(block);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(signed_byte(block[2 + i]));
}

struct SixBits {
  int s, t;
};

// s and t of a group out of 12 bytes. Bytes 0 to 3 have s of groups 0 to 3 in their low 6 bits, bytes 4 to 7 have t.
// Bytes 8 to 11 have the low 4 bits of s (low nibble) and of t (high nibble) of groups 4 to 7, whose upper 2 bits are
// the upper bits of bytes 0 to 3 (s) and 4 to 7 (t).
SixBits six_bits(const Byte* packed, int group) {
  if (group < 4) return {packed[group] & 63, packed[group + 4] & 63};
  return {(packed[group + 4] & 15) | ((packed[group - 4] >> 6) << 4),
          (packed[group + 4] >> 4) | ((packed[group] >> 6) << 4)};
}

// Two groups share 32 bytes of nibbles: the low nibbles are the first group. Bit g of fifth byte i is that of number i
// of group g; nullptr: there are no fifth bits.
void groups_with_minimum(const Byte* block, const Byte* fifth, const Byte* nibbles, float* out) {
  const float d = from_half(block), m = from_half(block + 2);
  for (int group = 0; group < 8; ++group) {
    const auto [s, t] = six_bits(block + 4, group);
    const float scale = d * static_cast<float>(s), minimum = m * static_cast<float>(t);
    for (int i = 0; i < 32; ++i) {
      int q = (nibbles[group / 2 * 32 + i] >> (group % 2 * 4)) & 15;
      if (fifth) q += ((fifth[i] >> group) & 1) * 16;
      out[group * 32 + i] = scale * static_cast<float>(q) - minimum;
    }
  }
}

void q4_k(const Byte* block, float* out) { groups_with_minimum(block, nullptr, block + 16, out); }
void q5_k(const Byte* block, float* out) { groups_with_minimum(block, block + 16, block + 48, out); }

// Each half of 128 numbers has 64 bytes of nibbles and 32 bytes of upper bits. Its quarters 0 and 1 are the low
// nibbles, 2 and 3 the high ones; byte i of the upper bits has 2 bits for number i of each quarter, those of quarter 0
// lowest.
void q6_k(const Byte* block, float* out) {
  const float d = from_half(block + 208);
  for (int number = 0; number < 256; ++number) {
    const int half = number / 128, quarter = number / 32 % 4, i = number % 32;
    const int low = (block[half * 64 + quarter % 2 * 32 + i] >> (quarter / 2 * 4)) & 15;
    const int upper = (block[128 + half * 32 + i] >> (quarter * 2)) & 3;
    const float scale = d * static_cast<float>(signed_byte(block[192 + number / 16]));
    out[number] = scale * static_cast<float>(low + upper * 16 - 32);
  }
}

template <auto block, Index numbers, Index bytes>
void every_block(std::span<const Byte> blocks, float* out) {
  for (; !blocks.empty(); blocks = blocks.subspan(bytes), out += numbers) block(blocks.data(), out);
}

template <auto block, Index numbers, Index bytes>
constexpr GgufType dequantised(std::string_view name, std::uint32_t code) {
  return {name, code, numbers, bytes, every_block<block, numbers, bytes>};
}

constexpr std::array known_types{dequantised<float32, 1, 4>("F32", 0),
                                 dequantised<float16, 1, 2>("F16", 1),
                                 dequantised<bfloat16, 1, 2>("BF16", 30),
                                 dequantised<q8_0, 32, 34>("Q8_0", 8),
                                 dequantised<q4_0, 32, 18>("Q4_0", 2),
                                 dequantised<q4_1, 32, 20>("Q4_1", 3),
                                 dequantised<q5_0, 32, 22>("Q5_0", 6),
                                 dequantised<q5_1, 32, 24>("Q5_1", 7),
                                 dequantised<q4_k, 256, 144>("Q4_K", 12),
                                 dequantised<q5_k, 256, 176>("Q5_K", 13),
                                 dequantised<q6_k, 256, 210>("Q6_K", 14),
                                 GgufType{"Q8_1", 9, 32, 36},
                                 GgufType{"Q2_K", 10, 256, 84},
                                 GgufType{"Q3_K", 11, 256, 110},
                                 GgufType{"Q8_K", 15, 256, 292},
                                 GgufType{"IQ2_XXS", 16, 256, 66},
                                 GgufType{"IQ2_XS", 17, 256, 74},
                                 GgufType{"IQ3_XXS", 18, 256, 98},
                                 GgufType{"IQ1_S", 19, 256, 50},
                                 GgufType{"IQ4_NL", 20, 32, 18},
                                 GgufType{"IQ3_S", 21, 256, 110},
                                 GgufType{"IQ2_S", 22, 256, 82},
                                 GgufType{"IQ4_XS", 23, 256, 136},
                                 GgufType{"I8", 24, 1, 1},
                                 GgufType{"I16", 25, 1, 2},
                                 GgufType{"I32", 26, 1, 4},
                                 GgufType{"I64", 27, 1, 8},
                                 GgufType{"F64", 28, 1, 8},
                                 GgufType{"IQ1_M", 29, 256, 56},
                                 GgufType{"TQ1_0", 34, 256, 54},
                                 GgufType{"TQ2_0", 35, 256, 66},
                                 GgufType{"MXFP4", 39, 32, 17},
                                 GgufType{"NVFP4", 40, 64, 36},
                                 GgufType{"Q1_0", 41, 128, 18},
                                 GgufType{"Q4_2", 4, 0, 0},
                                 GgufType{"Q4_3", 5, 0, 0},
                                 GgufType{"Q4_0_4_4", 31, 0, 0},
                                 GgufType{"Q4_0_4_8", 32, 0, 0},
                                 GgufType{"Q4_0_8_8", 33, 0, 0},
                                 GgufType{"IQ4_NL_4_4", 36, 0, 0},
                                 GgufType{"IQ4_NL_4_8", 37, 0, 0},
                                 GgufType{"IQ4_NL_8_8", 38, 0, 0}};

}  // namespace

const GgufType* gguf_type(std::uint32_t code) {
  const auto* found =
      std::find_if(known_types.begin(), known_types.end(), [&](auto& type) { return type.code == code; });
  return found == known_types.end() ? nullptr : found;
}

std::string dequantised_gguf_types() {
  std::string names;
  for (const auto& type : known_types)
    if (type.dequantise) names.append(names.empty() ? "" : ", ").append(type.name);
  return names;
}

}  // namespace attnbench
