// The blocks of GGUF tensors: numbers worked out by hand, and those of PyPI's gguf for random blocks.
#include "harness/inputs/checkpoint/gguf_blocks.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "harness/inputs/checkpoint/gguf.hpp"
#include "tests/catch.hpp"
#include "tests/folder.hpp"
#include "tests/inputs/gguf_bytes.hpp"

namespace attnbench::gguf_blocks_test {

namespace {

constexpr std::uint32_t f32 = 0, f16 = 1, q4_0 = 2, q4_1 = 3, q5_0 = 6, q5_1 = 7, q8_0 = 8, q4_k = 12, q5_k = 13,
                        q6_k = 14, bf16 = 30;
const std::string half = encoded(0x3800, 2), quarter = encoded(0x3400, 2), minus_two = encoded(0xc000, 2);

// The numbers of a tensor with one row, through a file.
std::vector<float> numbers_of(std::uint32_t type, const std::string& blocks) {
  const GgufType& facts = *gguf_type(type);
  REQUIRE(blocks.size() % static_cast<size_t>(facts.bytes) == 0);
  const auto count = blocks.size() / static_cast<size_t>(facts.bytes) * static_cast<size_t>(facts.numbers);
  const Folder folder;
  const GgufFile file(write_bytes(folder / "x.gguf", GgufBytes{}.tensor("x", {count}, type, blocks).bytes()));
  std::vector<float> numbers(count, std::numeric_limits<float>::quiet_NaN());
  file.read("x", numbers);
  return numbers;
}

// `count` bytes, the i-th byte(i).
template <class Function>
std::string bytes_by(int count, const Function& byte) {
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes += static_cast<char>(byte(i) & 255);
  return bytes;
}

// `count` numbers, the i-th number(i).
template <class Function>
std::vector<float> floats_by(int count, const Function& number) {
  std::vector<float> numbers;
  for (int i = 0; i < count; ++i) numbers.push_back(static_cast<float>(number(i)));
  return numbers;
}

// Low nibbles 0, 1, ..., 15 and high nibbles 15, 14, ..., 0.
const std::string ramp = bytes_by(16, [](int i) { return i | ((15 - i) << 4); });
int ramp_at(int i) { return i < 16 ? i : 31 - i; }

// Fifth bits of the numbers 1, 16 and 31.
const std::string fifths = encoded((1u << 1) | (1u << 16) | (1u << 31), 4);
int fifth_ramp_at(int i) { return ramp_at(i) + (i == 1 || i == 16 || i == 31 ? 16 : 0); }

// Scales 1, 2, 3, 63, 33, 20, 47, 62 and minima 5, 10, 63, 0, 50, 17, 40, 61 in 6 bits each. Scale 33 is 10 0001 in
// binary: its 10 are the upper bits of 0x81, its 0001 the low nibble of 0x21.
const std::string scales_and_minima = "\x81\x42\x83\xff\xc5\x4a\xbf\xc0\x21\x14\x8f\xde";
constexpr int scales[] = {1, 2, 3, 63, 33, 20, 47, 62}, minima[] = {5, 10, 63, 0, 50, 17, 40, 61};

int k_byte(int i) { return (i * 7 + i / 32 + 3) & 255; }
int k_nibble(int number) {  // low nibbles of 32 bytes are one group, the high ones the next
  const int group = number / 32, byte = k_byte(group / 2 * 32 + number % 32);
  return group % 2 == 0 ? byte % 16 : byte / 16;
}

}  // namespace

TEST_CASE("numbers of a GGUF file that are not quantised come back as they are", "[unit]") {
  const float largest = std::numeric_limits<float>::max();
  CHECK(numbers_of(f32, float32_bytes({1.5, -0.0, largest})) == std::vector<float>{1.5F, -0.0F, largest});
  // 1, the largest, the smallest normal and subnormal one, -2
  const std::string halves =
      encoded(0x3c00, 2) + encoded(0x7bff, 2) + encoded(0x0400, 2) + encoded(0x0001, 2) + minus_two;
  CHECK(numbers_of(f16, halves) == std::vector<float>{1, 65504, 0x1p-14F, 0x1p-24F, -2});
  const auto special =
      numbers_of(f16, encoded(0x7c00, 2) + encoded(0xfc00, 2) + encoded(0x7e00, 2) + encoded(0x8000, 2));
  CHECK((std::isinf(special[0]) && special[0] > 0 && std::isinf(special[1]) && special[1] < 0));
  CHECK((std::isnan(special[2]) && special[3] == 0 && std::signbit(special[3])));
  CHECK(numbers_of(bf16, encoded(0x3f80, 2) + encoded(0xc049, 2)) == std::vector<float>{1, -3.140625F});
}

TEST_CASE("a block of Q4_0, Q4_1, Q5_0, Q5_1 or Q8_0 is a scale, perhaps a minimum, and 32 integers", "[unit]") {
  CHECK(numbers_of(q4_0, half + ramp) == floats_by(32, [](int i) { return 0.5 * (ramp_at(i) - 8); }));
  CHECK(numbers_of(q4_1, half + minus_two + ramp) == floats_by(32, [](int i) { return 0.5 * ramp_at(i) - 2; }));
  CHECK(numbers_of(q5_0, half + fifths + ramp) == floats_by(32, [](int i) { return 0.5 * (fifth_ramp_at(i) - 16); }));
  CHECK(numbers_of(q5_1, half + minus_two + fifths + ramp) ==
        floats_by(32, [](int i) { return 0.5 * fifth_ramp_at(i) - 2; }));
  CHECK(numbers_of(q8_0, half + bytes_by(32, [](int i) { return 127 - i * 8; })) ==
        floats_by(32, [](int i) { return 0.5 * (127 - i * 8); }));  // down to -121
  CHECK(numbers_of(q8_0, half + std::string(32, '\x80'))[31] == -64);
}

TEST_CASE("blocks of a row follow each other, each with its scale", "[unit]") {
  const auto numbers = numbers_of(q4_0, half + ramp + minus_two + ramp);
  REQUIRE(numbers.size() == 64);
  CHECK((numbers[0] == -4 && numbers[32] == 16 && numbers[63] == 16));
}

TEST_CASE("a block of Q4_K or Q5_K has 8 groups with a scale and a minimum of 6 bits each", "[unit]") {
  const std::string nibbles = bytes_by(128, k_byte);
  const auto four = numbers_of(q4_k, half + quarter + scales_and_minima + nibbles);
  // By hand: byte 0 is 3 (group 0: 3, group 1: 0), byte 96 is 96 * 7 + 3 + 3 = 678 = 0xa6 in 8 bits (groups 6 and 7).
  CHECK(four[0] == 0.5F * 1 * 3 - 0.25F * 5);
  CHECK(four[32] == -0.25F * 10);
  CHECK(four[192] == 0.5F * 47 * 6 - 0.25F * 40);
  CHECK(four[224] == 0.5F * 62 * 10 - 0.25F * 61);
  CHECK(four == floats_by(256, [](int i) { return 0.5 * scales[i / 32] * k_nibble(i) - 0.25 * minima[i / 32]; }));

  const auto fifth_byte = [](int i) { return (i * 37 + 11) & 255; };
  const auto five = numbers_of(q5_k, half + quarter + scales_and_minima + bytes_by(32, fifth_byte) + nibbles);
  CHECK(five[0] == 0.5F * 1 * (3 + 16) - 0.25F * 5);  // fifth byte 0 is 11, with bits 0, 1 and 3
  CHECK(five[64] == 0.5F * 3 * 4 - 0.25F * 63);       // byte 32 is 0xe4, and bit 2 of 11 is 0
  CHECK(five == floats_by(256, [&](int i) {
          const int q = k_nibble(i) + 16 * ((fifth_byte(i % 32) >> (i / 32)) & 1);
          return 0.5 * scales[i / 32] * q - 0.25 * minima[i / 32];
        }));
}

TEST_CASE("a block of Q6_K has 16 groups with a signed scale and integers of 6 bits", "[unit]") {
  const auto low = [](int i) { return (i * 13 + 5) & 255; };
  const auto upper = [](int i) { return (i * 29 + 7) & 255; };
  const auto scale = [](int group) { return group == 3 ? -128 : group * 9 - 70; };
  const auto numbers = numbers_of(q6_k, bytes_by(128, low) + bytes_by(64, upper) + bytes_by(16, scale) + half);
  // By hand: low byte 0 is 0x05 and byte 32 is 421 - 256 = 0xa5; upper byte 0 is 7 = 00 00 01 11.
  CHECK(numbers[0] == 0.5F * -70 * (5 + 3 * 16 - 32));
  CHECK(numbers[32] == 0.5F * -52 * (5 + 1 * 16 - 32));
  CHECK(numbers[64] == 0.5F * -34 * (0 - 32));
  CHECK(numbers[96] == 0.5F * -16 * (10 - 32));
  std::vector<float> expected(256);
  for (int first = 0; first < 256; first += 128)
    for (int i = 0; i < 32; ++i) {
      const int near = low(first / 2 + i), far = low(first / 2 + 32 + i), bits = upper(first / 4 + i);
      const int q[] = {near % 16 + 16 * (bits % 4), far % 16 + 16 * (bits / 4 % 4), near / 16 + 16 * (bits / 16 % 4),
                       far / 16 + 16 * (bits / 64)};
      for (int quarter_of = 0; quarter_of < 4; ++quarter_of) {
        const int number = first + quarter_of * 32 + i;
        expected[static_cast<size_t>(number)] = static_cast<float>(0.5 * scale(number / 16) * (q[quarter_of] - 32));
      }
    }
  CHECK(numbers == expected);
}

namespace {

// Blocks of bytes from a linear congruential generator. Bit 6 of the upper byte of each float is cleared, so that it is
// finite: floats at these bytes of a block.
std::string random_blocks(const GgufType& type, const std::vector<size_t>& floats, int count) {
  std::string bytes;
  std::uint64_t state = type.code;
  for (int block = 0; block < count; ++block) {
    const size_t first = bytes.size();
    for (Index i = 0; i < type.bytes; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      bytes += static_cast<char>(state >> 56);
    }
    for (const size_t upper : floats) bytes[first + upper] = static_cast<char>(bytes[first + upper] & 0xbf);
  }
  return bytes;
}

std::uint64_t fnv1a(const std::vector<float>& numbers) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const float number : numbers)
    for (const char byte : encoded(std::bit_cast<std::uint32_t>(number), 4))
      hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return hash;
}

}  // namespace

// tests/scripts/gguf_test.py makes the same blocks and compares the hashes with those of gguf.quants.dequantize.
TEST_CASE("random blocks are dequantised to the bits that PyPI's gguf 0.19 gives", "[unit]") {
  struct Case {
    std::uint32_t type;
    std::vector<size_t> floats;  // upper bytes
    std::uint64_t hash;
  };
  const std::vector<Case> cases{
      {f32, {3}, 0x6dfb625325987780},     {f16, {1}, 0x5161acc933fc0e98},     {bf16, {1}, 0x7fabf9e8378ab2a0},
      {q8_0, {1}, 0xd9d19617718b6c7d},    {q4_0, {1}, 0xaf6c1d603ae08a95},    {q4_1, {1, 3}, 0x5304f06615c1b51d},
      {q5_0, {1}, 0x65edb1b326261bed},    {q5_1, {1, 3}, 0x071bbe2880a932be}, {q4_k, {1, 3}, 0x6f1844c51520f935},
      {q5_k, {1, 3}, 0x306d76b4e715fac3}, {q6_k, {209}, 0x437af967d04f23e8},
  };
  for (const auto& [type, floats, hash] : cases) {
    INFO(gguf_type(type)->name);
    CHECK(fnv1a(numbers_of(type, random_blocks(*gguf_type(type), floats, 64))) == hash);
  }
}

TEST_CASE("every type that can be dequantised is named, and the sizes of the others are known", "[unit]") {
  CHECK(dequantised_gguf_types() == "F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K, Q6_K");
  CHECK(gguf_type(42) == nullptr);
  CHECK((gguf_type(20)->name == "IQ4_NL" && gguf_type(20)->bytes == 18 && !gguf_type(20)->dequantise));
  for (std::uint32_t code = 0; code < 42; ++code) {
    REQUIRE(gguf_type(code) != nullptr);
    CHECK(gguf_type(code)->code == code);
  }
}

}  // namespace attnbench::gguf_blocks_test
