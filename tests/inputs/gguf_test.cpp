// The reader of GGUF files: metadata and places of tensors come back as written, every malformed file is refused with
// its reason, and no bytes make the reader crash or throw anything but Misuse. gguf_blocks_test.cpp tests the numbers.
#include "harness/inputs/checkpoint/gguf.hpp"

#include <cstdlib>
#include <limits>
#include <memory>
#include <random>

#include "tests/catch.hpp"
#include "tests/folder.hpp"
#include "tests/inputs/gguf_bytes.hpp"

namespace attnbench::gguf_test {

namespace {

constexpr std::uint32_t uint8 = 0, int8 = 1, uint16 = 2, int16 = 3, uint32 = 4, int32 = 5, float32 = 6, truth = 7,
                        text = 8, array = 9, uint64 = 10, int64 = 11, float64 = 12;
constexpr std::uint32_t f32 = 0, q2_k = 10, q8_0 = 8;
constexpr std::uint64_t huge = std::uint64_t{1} << 40;

bool contains(const std::string& message, const std::string& part) { return message.find(part) != std::string::npos; }

// A file and the reader of it.
struct Opened {
  Folder folder;
  GgufFile file;
  explicit Opened(const std::string& bytes) : file(write_bytes(folder / "x.gguf", bytes)) {}
};

std::string refusal(const std::string& bytes) {
  const Folder folder;
  const auto path = write_bytes(folder / "bad.gguf", bytes);
  const std::string message = misuse([&] { const GgufFile file(path); });
  CHECK(message.starts_with(path.string() + ": "));
  return message;
}

std::string refusal(const GgufBytes& file) { return refusal(file.bytes()); }

const std::string four_floats = float32_bytes({1, 2, 3, 4});

GgufBytes with_every_value() {
  GgufBytes file;
  file.entry("uint8", uint8, encoded(200, 1)).entry("int8", int8, encoded(200, 1));
  file.entry("uint16", uint16, encoded(65535, 2)).entry("int16", int16, encoded(65535, 2));
  file.entry("uint32", uint32, encoded(4000000000, 4)).entry("int32", int32, encoded(4000000000, 4));
  file.entry("uint64", uint64, encoded(1u << 31, 8)).entry("int64", int64, encoded(~std::uint64_t{6}, 8));
  file.entry("float32", float32, float32_bytes({0.25})).entry("float64", float64, float64_bytes({0.1}));
  file.entry("true", truth, encoded(1, 1)).entry("false", truth, encoded(0, 1));
  file.entry("text", text, gguf_text("SmolLM2")).entry("empty", text, gguf_text(""));
  file.entry("texts", array, gguf_array(text, {gguf_text("a"), gguf_text(""), gguf_text(std::string("\0\xc3", 2))}));
  file.entry("bytes", array, gguf_array(uint8, {encoded(1, 1), encoded(255, 1)}));
  file.entry("integers", array, gguf_array(int32, {encoded(3, 4), encoded(0xffffffff, 4)}));
  file.entry("floats", array, gguf_array(float32, {float32_bytes({0.5}), float32_bytes({-2})}));
  file.entry("truths", array, gguf_array(truth, {encoded(1, 1)}));
  file.entry("no texts", array, gguf_array(text, {})).entry("no integers", array, gguf_array(uint16, {}));
  const std::string pair = gguf_array(uint8, {encoded(1, 1), encoded(2, 1)});
  file.entry("nested", array, gguf_array(array, {pair, gguf_array(text, {gguf_text("b")}), pair}));
  file.entry("beyond", uint64, encoded(std::uint64_t{1} << 63, 8));
  file.entry("2^53", uint64, encoded(std::uint64_t{1} << 53, 8));
  return file;
}

}  // namespace

TEST_CASE("GGUF metadata of every type come back", "[unit]") {
  const Opened opened(with_every_value().bytes());
  const GgufFile& file = opened.file;
  CHECK((file.metadata<Index>("uint8") == 200 && file.metadata<Index>("int8") == -56));
  CHECK((file.metadata<Index>("uint16") == 65535 && file.metadata<Index>("int16") == -1));
  CHECK((file.metadata<Index>("uint32") == 4000000000 && file.metadata<Index>("int32") == -294967296));
  CHECK((file.metadata<Index>("uint64") == 2147483648 && file.metadata<Index>("int64") == -7));
  CHECK((file.metadata<double>("float32") == 0.25 && file.metadata<double>("float64") == 0.1));
  CHECK((file.metadata<double>("int64") == -7 && file.metadata<double>("uint32") == 4e9));
  CHECK((file.metadata<bool>("true") && !file.metadata<bool>("false")));
  CHECK((file.metadata<std::string>("text") == "SmolLM2" && file.metadata<std::string>("empty").empty()));
  CHECK(file.metadata<std::vector<std::string>>("texts") ==
        std::vector<std::string>{"a", "", std::string("\0\xc3", 2)});
  CHECK(file.metadata<std::vector<std::string>>("no texts").empty());
  CHECK(file.metadata<std::vector<Index>>("bytes") == std::vector<Index>{1, 255});
  CHECK(file.metadata<std::vector<Index>>("integers") == std::vector<Index>{3, -1});
  CHECK(file.metadata<std::vector<double>>("integers") == std::vector<double>{3, -1});
  CHECK(file.metadata<std::vector<double>>("floats") == std::vector<double>{0.5, -2});
  CHECK(file.metadata<std::vector<Index>>("no integers").empty());
  CHECK_FALSE(file.metadata_if_there<std::string>("absent"));
  CHECK_FALSE(file.metadata_if_there<std::vector<double>>("absent"));
  CHECK(file.metadata_if_there<Index>("uint8") == 200);
}

TEST_CASE("GGUF metadata of another type are refused with the key, the type and the expected one", "[unit]") {
  const Opened opened(with_every_value().bytes());
  const GgufFile& file = opened.file;
  const auto said = [&]<class T>(const char* key, T) {
    const std::string message = misuse([&] { file.metadata_if_there<T>(key); });
    CHECK(contains(message, "x.gguf: metadata key '" + std::string(key) + "' has the type "));
    return message.substr(message.find("has the type ") + 13);
  };
  CHECK(said("uint32", std::string()) == "uint32 and is 4000000000; expected a string");
  CHECK(said("text", Index()) == "string; expected an integer of at most 2^63 - 1");
  CHECK(said("float32", Index()) == "float32; expected an integer of at most 2^63 - 1");
  CHECK(said("beyond", Index()) == "uint64 and is 9223372036854775808; expected an integer of at most 2^63 - 1");
  CHECK(said("2^53", double()) == "uint64 and is 9007199254740992; expected a float, or an integer below 2^53");
  CHECK(said("true", Index()) == "bool; expected an integer of at most 2^63 - 1");
  CHECK(said("uint8", bool()) == "uint8 and is 200; expected a bool");
  CHECK(said("text", std::vector<std::string>()) == "string; expected an array of strings");
  CHECK(said("texts", std::string()) == "array of string; expected a string");
  CHECK(said("texts", std::vector<Index>()) == "array of string; expected an array of integers of at most 2^63 - 1");
  CHECK(said("no texts", std::vector<Index>()) == "array of string; expected an array of integers of at most 2^63 - 1");
  CHECK(said("no integers", std::vector<std::string>()) == "array of uint16; expected an array of strings");
  CHECK(said("floats", std::vector<Index>()) == "array of float32; expected an array of integers of at most 2^63 - 1");
  CHECK(said("truths", std::vector<double>()) ==
        "array of bool; expected an array of floats, or of integers below 2^53");
  CHECK(said("nested", std::vector<Index>()) == "array of array; expected an array of integers of at most 2^63 - 1");
  const std::string absent = misuse([&] { file.metadata<std::string>("textt"); });
  CHECK(contains(absent, "no metadata key 'textt' among its 24, expected a string; did you mean "));
}

TEST_CASE("GGUF tensors are found, with their shape in row-major order, and read", "[unit]") {
  GgufBytes bytes;
  bytes.tensor("matrix", {2, 3}, f32, float32_bytes({1, 2, 3, 4, 5, 6})).tensor("scalar", {}, f32, float32_bytes({7}));
  bytes.tensor("blocks", {32, 2}, q8_0, std::string(68, '\0')).tensor("empty", {0, 5}, f32, "");
  bytes.tensor("later", {256}, q2_k, std::string(84, '\0'));
  for (const std::uint32_t version : {2u, 3u}) {
    bytes.version = version;
    const Opened opened(bytes.bytes());
    const GgufFile& file = opened.file;
    CHECK((file.tensors().size() == 5 && file.has("matrix") && !file.has("Matrix")));
    CHECK(file.tensor("matrix").shape == std::vector<Index>{3, 2});
    std::vector<float> numbers(6);
    file.read("matrix", numbers);
    CHECK(numbers == std::vector<float>{1, 2, 3, 4, 5, 6});
    file.read("scalar", std::span(numbers).first(1));
    CHECK((numbers[0] == 7 && file.tensor("scalar").shape.empty()));
    CHECK((file.tensor("blocks").type->name == "Q8_0" && file.tensor("blocks").count == 64));
    file.read("empty", {});
    const auto said = [&](const char* name, size_t room) {
      numbers.resize(room);
      return misuse([&] { file.read(name, numbers); });
    };
    CHECK(
        contains(said("matrix", 7), "x.gguf: tensor 'matrix' of shape [3, 2] was asked for as 7 numbers; expected 6"));
    CHECK(contains(said("matrx", 6), "x.gguf: no tensor 'matrx' among its 5; did you mean matrix"));
    CHECK(contains(said("later", 256), "tensor 'later' has the type Q2_K; expected one of F32, F16, BF16, Q8_0, Q4_0"));
  }
}

TEST_CASE("the alignment of a GGUF file moves its data", "[unit]") {
  GgufBytes bytes;
  bytes.alignment = 256;
  bytes.entry("general.alignment", uint32, encoded(256, 4)).tensor("a", {1}, f32, float32_bytes({5}));
  bytes.tensor("b", {1}, f32, float32_bytes({6}));
  const Opened opened(bytes.bytes());
  float number = 0;
  opened.file.read("b", {&number, 1});
  CHECK(number == 6);

  const auto with = [](std::uint32_t type, const std::string& value) {
    return refusal(GgufBytes{}.entry("general.alignment", type, value).tensor("a", {4}, f32, four_floats));
  };
  CHECK(contains(with(uint32, encoded(0, 4)), "'general.alignment' is 0; expected a power of 2"));
  CHECK(contains(with(uint32, encoded(24, 4)), "'general.alignment' is 24; expected a power of 2"));
  CHECK(contains(with(uint64, encoded(32, 8)), "'general.alignment' has the type uint64; expected uint32"));
  CHECK(contains(with(text, gguf_text("32")), "'general.alignment' has the type string; expected uint32"));
}

TEST_CASE("a copy of a GGUF file's reader outlives the first", "[unit]") {
  auto first = std::make_unique<Opened>(GgufBytes{}.tensor("a", {4}, f32, four_floats).bytes());
  const GgufFile copy = first->file;
  first.reset();
  std::vector<float> numbers(4);
  copy.read("a", numbers);
  CHECK(numbers == std::vector<float>{1, 2, 3, 4});
}

TEST_CASE("files that are not GGUF, and versions that attnbench does not read, are refused", "[unit]") {
  const Folder folder;
  CHECK(contains(misuse([&] { const GgufFile file(folder / "none.gguf"); }),
                 "there is no such file; expected a .gguf file"));
  CHECK(contains(misuse([&] { const GgufFile file(folder.path()); }), "not a regular file; expected a .gguf file"));
  CHECK(contains(refusal(""), "the beginning of the header needs 4 bytes at byte 0 and the file has 0 more"));
  CHECK(contains(refusal("PK\3rest"), "begins with 'PK?r'; expected 'GGUF'"));
  GgufBytes file;
  file.version = 1;
  CHECK(contains(refusal(file), "GGUF version 1; expected 2 or 3: convert the model again"));
  file.version = 4;
  CHECK(contains(refusal(file), "GGUF version 4; expected 2 or 3"));
  file.version = 0x03000000;
  CHECK(contains(refusal(file), "a big-endian GGUF file (version 3); expected little endian"));
}

TEST_CASE("malformed GGUF metadata are refused", "[unit]") {
  const auto with = [](std::uint32_t type, const std::string& value) {
    return refusal(GgufBytes{}.entry("key", type, value));
  };
  CHECK(contains(with(13, ""), "metadata key 'key' has the value type 13; expected 0 (uint8) to 12 (float64)"));
  CHECK(contains(with(array, gguf_array(99, {})), "metadata key 'key' has the value type 99"));
  CHECK(contains(with(truth, encoded(2, 1)), "metadata key 'key' has a bool that is neither 0 nor 1"));
  CHECK(contains(with(array, gguf_array(truth, {encoded(1, 1), encoded(9, 1)})), "a bool that is neither 0 nor 1"));
  CHECK(contains(with(text, encoded(huge, 8)), "metadata key 'key' needs 1099511627776 bytes at byte "));
  CHECK(contains(with(text, encoded(~std::uint64_t{0}, 8)), "needs 18446744073709551615 bytes at byte "));
  CHECK(contains(with(array, encoded(uint32, 4) + encoded(huge, 8)), "metadata key 'key' needs 4398046511104 bytes"));
  CHECK(contains(with(array, encoded(float64, 4) + encoded(std::uint64_t{1} << 61, 8)),
                 "metadata key 'key' needs 2305843009213693952 times 8 bytes"));
  CHECK(contains(with(array, encoded(text, 4) + encoded(huge, 8)), "metadata key 'key' needs "));
  CHECK(contains(with(array, encoded(array, 4) + encoded(huge, 8)), "metadata key 'key' "));
  CHECK(
      contains(refusal(GgufBytes{}.entry("key", uint8, "a").entry("key", uint8, "a")), "the metadata key 'key' twice"));
  std::string nested = gguf_array(uint8, {encoded(1, 1)});
  for (int depth = 1; depth < 4; ++depth) nested = gguf_array(array, {nested});
  CHECK(misuse([&] { const Opened opened(GgufBytes{}.entry("key", array, nested).bytes()); }).empty());
  CHECK(contains(with(array, gguf_array(array, {nested})), "metadata key 'key' has arrays nested more than 4 deep"));
  CHECK(contains(refusal("GGUF" + encoded(3, 4) + encoded(0, 8) + encoded(huge, 8)),
                 "the key of metadata entry 0 needs 8"));
  CHECK(contains(refusal("GGUF" + encoded(3, 4) + encoded(huge, 8) + encoded(0, 8)), "the name of tensor 0 needs 8"));
  const std::string cut = "GGUF" + encoded(3, 4) + encoded(0, 8) + encoded(1, 8) + encoded(50, 8) + "short";
  CHECK(contains(refusal(cut), "the key of metadata entry 0 needs 50 bytes at byte 32 and the file has 5 more"));
  CHECK(contains(refusal(GgufBytes{}.entry("a\nb", 13, "")), "metadata key 'a?b'"));
}

TEST_CASE("malformed GGUF tensors are refused", "[unit]") {
  const auto with = [](const std::vector<std::uint64_t>& axes, std::uint32_t type, std::uint64_t offset) {
    GgufBytes file;
    file.data = four_floats;
    return refusal(file.place("w", axes, type, offset));
  };
  CHECK(contains(with({1, 1, 1, 1, 1}, f32, 0), "tensor 'w' has 5 axes; expected at most 4"));
  CHECK(contains(with({std::uint64_t{1} << 63}, f32, 0), "tensor 'w' has an axis of 9223372036854775808"));
  CHECK(contains(with({huge, huge}, f32, 0), "tensor 'w' of shape [1099511627776, 1099511627776] has more than 2^63"));
  CHECK(contains(with({std::uint64_t{1} << 62}, f32, 0), "has more than 2^63 numbers or bytes"));
  CHECK(contains(with({4}, 42, 0), "tensor 'w' has the type 42; expected one of F32, F16, BF16, Q8_0, Q4_0, Q4_1"));
  CHECK(contains(with({32}, 4, 0), "tensor 'w' has the type 4 (Q4_2, which ggml has removed); expected one of F32"));
  CHECK(contains(with({48, 2}, q8_0, 0),
                 "tensor 'w' of shape [2, 48] has rows of 48 numbers; expected a multiple of 32"));
  CHECK(contains(with({}, q8_0, 0), "tensor 'w' of shape [] has rows of 1 numbers; expected a multiple of 32"));
  CHECK(contains(with({1}, f32, 4), "tensor 'w' begins at byte 4 of the data; expected a multiple of 32"));
  CHECK(contains(with({5}, f32, 0), "tensor 'w' has 20 bytes from byte 0 of the data; expected them within the 16"));
  CHECK(contains(with({1}, f32, 32), "tensor 'w' has 4 bytes from byte 32 of the data"));
  CHECK(contains(with({1}, f32, ~std::uint64_t{31}), "from byte 18446744073709551584 of the data"));
  GgufBytes twice;
  CHECK(contains(refusal(twice.tensor("w", {4}, f32, four_floats).tensor("w", {4}, f32, four_floats)),
                 "the tensor 'w' twice"));
  GgufBytes same;
  CHECK(contains(refusal(same.tensor("v", {4}, f32, four_floats).place("w", {4}, f32, 0)), "(they overlap)"));
  GgufBytes within;  // an empty tensor between two that overlap hides neither
  within.tensor("long", {32}, f32, std::string(128, '\0')).place("empty", {0}, f32, 32).place("w", {4}, f32, 64);
  CHECK(contains(refusal(within),
                 "tensor 'w' begins at byte 64 of the data; expected 128 or more, where tensor 'long' "
                 "ends (they overlap)"));
}

TEST_CASE("no prefix and no change of a GGUF file makes its reader fail otherwise than by Misuse", "[unit]") {
  const std::string whole =
      with_every_value().tensor("a", {4}, f32, four_floats).tensor("b", {32}, q8_0, std::string(34, 'x')).bytes();
  const Folder folder;
  const auto read_all = [&](const std::string& bytes) {
    return misuse([&] {
      const GgufFile file(write_bytes(folder / "x.gguf", bytes));
      for (const auto& [name, tensor] : file.tensors()) {
        std::vector<float> numbers(static_cast<size_t>(tensor.count));
        file.read(name, numbers);
      }
    });
  };
  CHECK(read_all(whole).empty());
  for (size_t length = 0; length < whole.size(); ++length) CHECK_FALSE(read_all(whole.substr(0, length)).empty());
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string changed = whole;
    changed[random() % changed.size()] = static_cast<char>(random());
    CHECK_NOTHROW(read_all(changed));  // every other exception passes through read_all
  }
}

// tests/scripts/gguf_test.py runs this: all tensors of a file in the order of their names, as float32.
TEST_CASE("values of the GGUF file that ATTNBENCH_GGUF names", "[.gguf-values]") {
  const char *from = std::getenv("ATTNBENCH_GGUF"), *to = std::getenv("ATTNBENCH_GGUF_OUT");
  REQUIRE((from && to));
  const GgufFile file(from);
  std::ofstream out(to, std::ios::binary);
  std::vector<float> numbers;
  for (const auto& [name, tensor] : file.tensors()) {
    numbers.resize(static_cast<size_t>(tensor.count));
    file.read(name, numbers);
    out.write(reinterpret_cast<const char*>(numbers.data()),
              static_cast<std::streamsize>(numbers.size() * sizeof(float)));
  }
  REQUIRE(out.flush());
}

}  // namespace attnbench::gguf_test
