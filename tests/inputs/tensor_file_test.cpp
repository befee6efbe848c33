// The readers of tensor files: every number comes back exactly, every malformed file is refused with its reason, and no
// bytes make a reader crash or throw anything but Misuse.
#include "harness/inputs/tensor_file.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <random>

#include "harness/inputs/input.hpp"
#include "harness/inputs/write_safetensors.hpp"
#include "tests/catch.hpp"
#include "tests/folder.hpp"
#include "tests/inputs/tensor_bytes.hpp"

namespace attnbench::tensor_file_test {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

Tensor numbered(std::vector<Index> shape, double first = 1) {
  Tensor tensor{std::move(shape), {}};
  Index count = 1;
  for (const Index axis : tensor.shape) count *= axis;
  for (Index i = 0; i < count; ++i) tensor.values.push_back(first + static_cast<double>(i) / 4);
  return tensor;
}

// The refusal of a safetensors file with this header and so many bytes of data.
std::string refusal(const std::string& header, size_t data_bytes) {
  const Folder folder;
  const auto path = write_bytes(folder / "bad.safetensors", safetensors(header, std::string(data_bytes, '\0')));
  return misuse([&] { read_tensors(path); });
}

std::string tensor_header(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return fmt::format(R"({{"q":{{"dtype":"{}","shape":{},"data_offsets":{}}}}})", dtype, shape, offsets);
}

// The refusal of an archive with one array q.
std::string npz_refusal(const std::string& dictionary, const std::string& numbers) {
  const Folder folder;
  const auto path = write_zip(folder / "bad.npz", {{"q.npy", npy(dictionary, numbers)}});
  return misuse([&] { read_tensors(path); });
}

std::string attention_refusal(const NamedTensors& tensors, const std::vector<Need>& needs = {}) {
  const Folder folder;
  write_safetensors(folder / "bad.safetensors", tensors, Precision::f64);
  return misuse([&] { read_attention_file(folder / "bad.safetensors", needs); });
}

AttentionFile round_trip(const NamedTensors& tensors, const std::vector<Need>& needs = {}) {
  const Folder folder;
  write_safetensors(folder / "good.safetensors", tensors, Precision::f64);
  return read_attention_file(folder / "good.safetensors", needs);
}

}  // namespace

TEST_CASE("float64 and float32 safetensors come back as they were written", "[unit]") {
  const Folder folder;
  const NamedTensors tensors{{"a", numbered({2, 3}, -1)}, {"b \"quoted\"", numbered({4})}, {"scalar", {{}, {0.1}}}};
  for (const auto precision : {Precision::f64, Precision::f32}) {
    write_safetensors(folder / "t.safetensors", tensors, precision);
    const auto read = read_tensors(folder / "t.safetensors");
    REQUIRE(read.size() == 3);
    for (const auto& [name, tensor] : tensors) {
      CHECK(read.at(name).shape == tensor.shape);
      for (size_t i = 0; i < tensor.values.size(); ++i)
        CHECK(read.at(name).values[i] == (precision == Precision::f64
                                              ? tensor.values[i]
                                              : static_cast<double>(static_cast<float>(tensor.values[i]))));
    }
  }
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);  // no temporary is left
}

TEST_CASE("writing where nothing can be written is refused and leaves nothing", "[unit]") {
  const Folder folder;
  const auto path = folder / "missing/t.safetensors";
  CHECK(contains(misuse([&] {
                   write_safetensors(path, {{"q", numbered({1})}}, Precision::f64);
                 }),
                 "cannot be written"));
  CHECK(contains(misuse([&] { write_safetensors(folder / "t", {{"\xff", numbered({1})}}, Precision::f64); }), "UTF-8"));
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("every float16 is decoded exactly", "[unit]") {
  std::string numbers;
  for (std::uint64_t bits = 0; bits < 65536; ++bits) numbers += encoded(bits, 2);
  const Folder folder;
  write_bytes(folder / "t.safetensors", safetensors(tensor_header("F16", "[65536]", "[0,131072]"), numbers));
  const auto values = read_tensors(folder / "t.safetensors").at("q").values;
  for (size_t bits = 0; bits < 65536; ++bits) {
    const int exponent = static_cast<int>(bits >> 10 & 31), fraction = static_cast<int>(bits & 1023);
    const double sign = bits >> 15 ? -1 : 1;
    INFO(bits);
    if (exponent == 31 && fraction != 0)
      REQUIRE(std::isnan(values[bits]));
    else if (exponent == 31)
      REQUIRE(values[bits] == sign * infinity);
    else if (exponent == 0)
      REQUIRE(values[bits] == sign * std::ldexp(fraction, -24));
    else
      REQUIRE(values[bits] == sign * std::ldexp(1024 + fraction, exponent - 25));
    if (exponent != 31) REQUIRE(std::signbit(values[bits]) == (bits >> 15 == 1));
  }
}

TEST_CASE("every bfloat16 is the float32 whose upper half it is", "[unit]") {
  std::string numbers;
  for (std::uint64_t bits = 0; bits < 65536; ++bits) numbers += encoded(bits, 2);
  const Folder folder;
  write_bytes(folder / "t.safetensors", safetensors(tensor_header("BF16", "[65536]", "[0,131072]"), numbers));
  const auto values = read_tensors(folder / "t.safetensors").at("q").values;
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const double expected = std::bit_cast<float>(bits << 16);
    INFO(bits);
    if (std::isnan(expected))
      REQUIRE(std::isnan(values[bits]));
    else
      REQUIRE(std::bit_cast<std::uint64_t>(values[bits]) == std::bit_cast<std::uint64_t>(expected));
  }
}

TEST_CASE("npz arrays come back from each width, byte order, memory order, compression and version", "[unit]") {
  const Folder folder;
  const std::vector<double> values{1, -2, 0.5, 1024, 0.25, 6};  // exact in float16
  const std::string half_bits{"\x00\x3c\x00\xc0\x00\x38\x00\x64\x00\x34\x00\x46", 12};
  std::string half_big = half_bits;
  for (size_t i = 0; i < half_big.size(); i += 2) std::swap(half_big[i], half_big[i + 1]);
  const auto check = [&](const std::string& array, const std::vector<double>& expected) {
    for (const zip_int32_t compression : {ZIP_CM_STORE, ZIP_CM_DEFLATE}) {
      const auto path = write_zip(folder / "t.npz", {{"a.npy", array}, {"notes.txt", "no array"}}, compression);
      const auto read = read_tensors(path);
      REQUIRE(read.size() == 1);
      CHECK(read.at("a").shape == std::vector<Index>{2, 3});
      CHECK(read.at("a").values == expected);
    }
  };
  const auto dictionary = [](const char* descr, const char* fortran) {
    return fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': (2, 3), }}", descr, fortran);
  };
  check(npy(dictionary("<f2", "False"), half_bits), values);
  check(npy(dictionary(">f2", "False"), half_big), values);
  check(npy(dictionary("<f4", "False"), float32_bytes(values)), values);
  check(npy(dictionary(">f4", "False"), float32_bytes(values, std::endian::big)), values);
  check(npy(dictionary("<f8", "False"), float64_bytes(values)), values);
  check(npy(dictionary(">f8", "False"), float64_bytes(values, std::endian::big)), values);
  check(npy(dictionary("<f8", "True"), float64_bytes({1, 1024, -2, 0.25, 0.5, 6})), values);
  const std::string bare = dictionary("<f8", "False") + "\n";
  for (const char version : {'\2', '\3'})
    check("\x93NUMPY" + std::string{version, '\0'} + encoded(bare.size(), 4) + bare + float64_bytes(values), values);
}

TEST_CASE("Fortran order is undone for three axes, and scalars and lists have their shapes", "[unit]") {
  const Folder folder;
  std::vector<double> column_major(24);
  for (size_t i = 0; i < 2; ++i)
    for (size_t j = 0; j < 3; ++j)
      for (size_t k = 0; k < 4; ++k) column_major[i + 2 * (j + 3 * k)] = static_cast<double>(12 * i + 4 * j + k);
  write_zip(
      folder / "t.npz",
      {{"a.npy", npy("{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3, 4), }", float64_bytes(column_major))},
       {"s.npy", npy("{'descr': '<f8', 'fortran_order': False, 'shape': (), }", float64_bytes({7}))},
       {"l.npy", npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", float64_bytes({7, 8}))}});
  const auto read = read_tensors(folder / "t.npz");
  for (size_t i = 0; i < 24; ++i) CHECK(read.at("a").values[i] == static_cast<double>(i));
  CHECK(read.at("s").shape.empty());
  CHECK(read.at("s").values == std::vector<double>{7});
  CHECK(read.at("l").shape == std::vector<Index>{2});
}

TEST_CASE("tensors of other dtypes do not disturb the named ones", "[unit]") {
  const Folder folder;
  write_bytes(folder / "t.safetensors",
              safetensors(R"({"__metadata__":{"made":"here"},"ids":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},)"
                          R"("q":{"dtype":"F64","shape":[1,1],"data_offsets":[8,16]}}  )",
                          encoded(5, 8) + float64_bytes({3})));
  CHECK(read_tensors(folder / "t.safetensors", {"q"}).at("q").values == std::vector<double>{3});
  CHECK(contains(misuse([&] { read_tensors(folder / "t.safetensors"); }), "'ids' has the dtype I64"));
  write_zip(folder / "t.npz",
            {{"ids.npy", npy("{'descr': '<i8', 'fortran_order': False, 'shape': (1,), }", encoded(5, 8))},
             {"q.npy", npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1), }", float64_bytes({3}))}});
  CHECK(read_tensors(folder / "t.npz", {"q"}).at("q").values == std::vector<double>{3});
  CHECK(contains(misuse([&] { read_tensors(folder / "t.npz"); }), "'<i8' is not read"));
}

TEST_CASE("a tensor that is not there is refused with those that are", "[unit]") {
  const Folder folder;
  write_safetensors(folder / "t.safetensors", {{"query", numbered({1})}, {"keys", numbered({1})}}, Precision::f32);
  const auto message = misuse([&] { read_tensors(folder / "t.safetensors", {"query", "key"}); });
  CHECK(contains(message, "no tensor 'key'"));
  CHECK(contains(message, "did you mean keys?"));
}

TEST_CASE("what is no tensor file is refused by name", "[unit]") {
  const Folder folder;
  const auto refused = [&](const std::string& name, const std::string& bytes) {
    const auto path = write_bytes(folder / name, bytes);
    return misuse([&] { read_tensors(path); });
  };
  CHECK(contains(misuse([&] { read_tensors(folder / "none.npz"); }), "no such file"));
  CHECK(contains(misuse([&] { read_tensors(folder.path()); }), "no regular file"));
  CHECK(contains(refused("t.safetensors", ""), "0 bytes"));
  CHECK(contains(refused("t.safetensors", "1234567"), "7 bytes"));
  CHECK(contains(refused("t.safetensors", "PK\3\4 and so on"), "zip archive"));
  CHECK(contains(refused("t.txt", "q, k, v"), "neither .safetensors nor .npz"));
  CHECK(contains(refused("t.npy", npy("{}", "")), "numpy.savez"));
  CHECK(contains(refused("t.npz", ""), "no readable zip"));
  CHECK(contains(refused("t.npz", "not a zip archive at all"), "no readable zip"));
  write_zip(folder / "words.npz", {{"notes.txt", "no array"}});
  CHECK(contains(misuse([&] { read_tensors(folder / "words.npz"); }), "without arrays"));
}

TEST_CASE("files are known by their first bytes when their name says nothing", "[unit]") {
  const Folder folder;
  write_safetensors(folder / "a", {{"q", numbered({2})}}, Precision::f64);
  CHECK(read_tensors(folder / "a").at("q").values == numbered({2}).values);
  write_zip(folder / "b",
            {{"q.npy", npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", float64_bytes({7}))}});
  CHECK(read_tensors(folder / "b").at("q").values == std::vector<double>{7});
}

TEST_CASE("safetensors headers that lie about their length are refused", "[unit]") {
  const Folder folder;
  const std::string whole = safetensors(tensor_header("F64", "[1]", "[0,8]"), float64_bytes({1}));
  const auto refused = [&](const std::string& bytes) {
    const auto path = write_bytes(folder / "t.safetensors", bytes);
    return misuse([&] { read_tensors(path); });
  };
  CHECK(refused(whole) == "");
  for (size_t length = 0; length < whole.size(); ++length) {
    INFO(length);
    CHECK(refused(whole.substr(0, length)) != "");
  }
  CHECK(contains(refused(encoded(1000, 8) + whole.substr(8)), "a header of 1000 bytes"));
  CHECK(contains(refused(std::string(8, '\xff') + whole.substr(8)), "a header of 18446744073709551615 bytes"));
  CHECK(contains(refused(encoded(0, 8) + whole.substr(8)), "not a JSON object"));
  CHECK(contains(refused(whole + "more"), "the end of the file"));
}

TEST_CASE("safetensors headers of another form are refused", "[unit]") {
  CHECK(contains(refusal("{\"q\":", 0), "not JSON at its byte"));
  CHECK(contains(refusal("{} trailing", 0), "not JSON at its byte"));
  CHECK(contains(refusal(std::string("{}\0{}", 5), 0), "not a JSON object"));
  CHECK(contains(refusal("{\"\xff\":1}", 0), "not JSON at its byte"));
  CHECK(contains(refusal("[]", 0), "not a JSON object"));
  CHECK(contains(refusal(R"({"q":1})", 0), "a number at 'q'"));
  CHECK(contains(refusal(R"({"q":null})", 0), "null at 'q'"));
  CHECK(contains(refusal(R"({"q":{}})", 0), "lacks one of"));
  CHECK(contains(refusal(R"({"q":{"dtype":"F64","shape":[1]}})", 8), "lacks one of"));
  CHECK(contains(refusal(R"({"__metadata__":{"a":{"b":"c"}}})", 0), "an object at '__metadata__'"));
  CHECK(contains(refusal(R"({"__metadata__":{"a":"b","a":"c"}})", 0), "the key 'a' twice"));
  CHECK(contains(refusal(R"({"q":{"dtype":"F64","dtype":"F32"}})", 0), "the key 'dtype' twice"));
  CHECK(contains(refusal(R"({"q":{"strides":[1]}})", 0), "the field 'strides'"));
  const std::string q = tensor_header("F64", "[1]", "[0,8]"), inner = q.substr(1, q.size() - 2);
  CHECK(contains(refusal("{" + inner + "," + inner + "}", 8), "the key 'q' twice"));
  CHECK(contains(refusal(tensor_header("F65", "[1]", "[0,8]"), 8), "unknown dtype 'F65'"));
  CHECK(contains(refusal(tensor_header("F64", "\"1\"", "[0,8]"), 8), "a text at 'q'"));
  CHECK(contains(refusal(tensor_header("F64", "[-1]", "[0,8]"), 8), "a negative number"));
  CHECK(contains(refusal(tensor_header("F64", "[1.0]", "[0,8]"), 8), "not an integer"));
  CHECK(contains(refusal(tensor_header("F64", "[99999999999999999999]", "[0,8]"), 8), "not an integer"));
  CHECK(contains(refusal(tensor_header("F64", "[9999999999999999999]", "[0,8]"), 8), "too large"));
  CHECK(contains(refusal(tensor_header("F64", "[[1]]", "[0,8]"), 8), "a list at 'q'"));
  CHECK(contains(refusal(tensor_header("F64", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,8]"), 8), "16 axes"));
  CHECK(contains(refusal(tensor_header("F64", "[1]", "[0]"), 8), "without two numbers"));
  CHECK(contains(refusal(tensor_header("F64", "[1]", "[0,8,8]"), 8), "without two numbers"));
}

TEST_CASE("a header that nests a million levels deep is refused at the first level too many", "[unit]") {
  const std::string brackets(1'000'000, '[');
  CHECK(contains(refusal("{\"q\":" + brackets, 0), "a list at 'q'"));
  CHECK(contains(refusal("{\"q\":{\"shape\":" + brackets, 0), "a list at 'q'"));
  std::string objects;
  for (int i = 0; i < 200'000; ++i) objects += "{\"a\":";
  CHECK(contains(refusal(objects, 0), "the field 'a'"));
  CHECK(contains(refusal("{\"__metadata__\":" + objects, 0), "an object at '__metadata__'"));
}

TEST_CASE("safetensors offsets and sizes that do not fit are refused", "[unit]") {
  CHECK(contains(refusal(tensor_header("F64", "[2]", "[0,16]"), 8), "offsets [0, 16]"));
  CHECK(contains(refusal(tensor_header("F64", "[1]", "[16,24]"), 8), "offsets [16, 24]"));
  CHECK(contains(refusal(tensor_header("F64", "[1]", "[8,0]"), 8), "begin <= end"));
  CHECK(contains(refusal(tensor_header("F64", "[1]", "[18446744073709551608,18446744073709551615]"), 8), "offsets"));
  CHECK(contains(refusal(tensor_header("F64", "[2]", "[0,8]"), 8), "8 bytes of data"));
  CHECK(contains(refusal(tensor_header("F32", "[3]", "[0,8]"), 8), "8 bytes of data"));
  CHECK(contains(refusal(tensor_header("F4", "[3]", "[0,1]"), 1), "times 4 bits"));
  CHECK(contains(refusal(tensor_header("F64", "[4294967296,4294967296]", "[0,8]"), 8), "8 bytes of data"));
  CHECK(contains(refusal(tensor_header("F64", "[4294967296,4294967296,0]", "[0,0]"), 0), "0 bytes of data"));
  CHECK(contains(refusal(tensor_header("F64", "[2305843009213693952]", "[0,0]"), 0), "0 bytes of data"));
  const auto two = [](const std::string& first, const std::string& second) {
    const std::string a = tensor_header("F64", "[1]", first), b = tensor_header("F64", "[1]", second);
    return a.substr(0, a.size() - 1) + ",\"k\"" + b.substr(4);
  };
  CHECK(refusal(two("[0,8]", "[8,16]"), 16) == "");
  CHECK(contains(refusal(two("[0,8]", "[0,8]"), 8), "they overlap"));
  CHECK(contains(refusal(two("[0,8]", "[4,12]"), 12), "they overlap"));
  CHECK(contains(refusal(two("[0,8]", "[12,20]"), 20), "a gap"));
}

TEST_CASE("npy headers of another form are refused", "[unit]") {
  const auto shaped = [](const std::string& shape) {
    return "{'descr': '<f8', 'fortran_order': False, 'shape': " + shape + ", }";
  };
  const std::string one = float64_bytes({1});
  CHECK(npz_refusal(shaped("(1,)"), one) == "");
  CHECK(npz_refusal(R"({"shape": (1,), "descr": "<f8", "fortran_order": False})", one) == "");
  CHECK(contains(npz_refusal(shaped("(1)"), one), "',' after the only axis"));
  CHECK(contains(npz_refusal(shaped("(-1,)"), one), "a size >= 0"));
  CHECK(contains(npz_refusal(shaped("(99999999999999999999,)"), one), "a size >= 0"));
  CHECK(contains(npz_refusal(shaped("1"), one), "expected '('"));
  CHECK(contains(npz_refusal(shaped("(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)"), one), "at most 16 axes"));
  CHECK(contains(npz_refusal(shaped("(2,)"), one), "8 bytes of numbers"));
  CHECK(contains(npz_refusal(shaped("(1,)"), ""), "0 bytes of numbers"));
  CHECK(contains(npz_refusal(shaped("(1,)"), one + one), "16 bytes of numbers"));
  CHECK(contains(npz_refusal(shaped("(4294967296, 4294967296)"), one), "8 bytes of numbers"));
  CHECK(contains(npz_refusal(shaped("(4294967296, 4294967296, 0)"), ""), "0 bytes of numbers"));
  CHECK(contains(npz_refusal("{'descr': '<f8', 'fortran_order': False}", one), "the keys"));
  CHECK(contains(npz_refusal("{'descr': '<f8', 'descr': '<f8'}", one), "each key once"));
  CHECK(contains(npz_refusal("{'descr': '<f8', 'fortran_order': 0, 'shape': ()}", one), "True or False"));
  CHECK(contains(npz_refusal("{'descr': '<f8', 'order': 0}", one), "the keys"));
  CHECK(contains(npz_refusal("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': ()}", one), "structured"));
  CHECK(contains(npz_refusal("{'descr': '|O', 'fortran_order': False, 'shape': ()}", one), "'|O' is not read"));
  CHECK(contains(npz_refusal("{'descr': '<f8", one), "closing quote"));
  CHECK(contains(npz_refusal(shaped("(1,)") + " + 1", one), "after the dictionary"));
  CHECK(contains(npz_refusal("", one), "expected '{'"));
  CHECK(contains(npz_refusal(std::string(60'000, '{'), one), "a quoted word"));
}

TEST_CASE("archives whose entries are no arrays, twice there, or of another compression are refused", "[unit]") {
  const Folder folder;
  const std::string good = npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", float64_bytes({1}));
  const auto refused = [&](const std::vector<std::pair<std::string, std::string>>& files, zip_int32_t compression) {
    const auto path = write_zip(folder / "t.npz", files, compression);
    return misuse([&] { read_tensors(path); });
  };
  CHECK(contains(refused({{"q.npy", "short"}}, ZIP_CM_STORE), "cut short"));
  CHECK(contains(refused({{"q.npy", "no array in here"}}, ZIP_CM_STORE), "not an npy array"));
  CHECK(contains(refused({{"q.npy", "\x93NUMPY" + std::string("\4\0", 2) + good}}, ZIP_CM_STORE), "not an npy array"));
  CHECK(contains(refused({{"q.npy", "\x93NUMPY" + std::string("\2\0", 2) + std::string(40, '\xff')}}, ZIP_CM_STORE),
                 "header of 4294967295 bytes"));
  // Names are as long as each other, so that one may be made the other in the bytes: libzip itself writes none twice.
  write_zip(folder / "t.npz", {{"q.npy", good}, {"k.npy", good}}, ZIP_CM_STORE);
  std::string bytes = bytes_of_file(folder / "t.npz");
  for (size_t at = bytes.find("k.npy"); at != std::string::npos; at = bytes.find("k.npy")) bytes[at] = 'q';
  write_bytes(folder / "t.npz", bytes);
  CHECK(contains(misuse([&] { read_tensors(folder / "t.npz"); }), "twice"));
}

TEST_CASE("damaged and bomb-like archives are refused", "[unit]") {
  const Folder folder;
  const std::string dictionary = "{'descr': '<f8', 'fortran_order': False, 'shape': (64,), }";
  const auto path =
      write_zip(folder / "t.npz", {{"q.npy", npy(dictionary, float64_bytes(numbered({64}).values))}}, ZIP_CM_STORE);
  const std::string whole = bytes_of_file(path);
  for (size_t length = 0; length < whole.size(); length += 7) {
    INFO(length);
    write_bytes(path, whole.substr(0, length));
    CHECK(misuse([&] { read_tensors(path); }) != "");
  }
  std::string flipped = whole;
  flipped[whole.find("PK\1\2") - 20] ^= 1;  // among the numbers, which end where the directory begins
  write_bytes(path, flipped);
  CHECK(contains(misuse([&] { read_tensors(path); }), "damaged"));

  // The central directory declares the sizes: at its signature + 20 the compressed and + 24 the decompressed one.
  const size_t directory = whole.find("PK\1\2");
  for (const std::uint64_t declared : {std::uint64_t{1} << 20, std::uint64_t{0xfffffff0}}) {
    std::string bomb = whole;
    bomb.replace(directory + 24, 4, encoded(declared, 4));
    write_bytes(path, bomb);
    CHECK(contains(misuse([&] { read_tensors(path); }), "declares"));
    bomb.replace(directory + 20, 4, encoded(declared, 4));
    write_bytes(path, bomb);
    CHECK(misuse([&] { read_tensors(path); }) != "");
  }
}

TEST_CASE("archives whose entries share their bytes are refused", "[unit]") {
  const Folder folder;
  const std::string array =
      npy("{'descr': '<f8', 'fortran_order': False, 'shape': (64,), }", float64_bytes(numbered({64}).values));
  const auto path = write_zip(folder / "t.npz", {{"k.npy", array}, {"q.npy", array}}, ZIP_CM_STORE);
  std::string bytes = bytes_of_file(path);
  const std::uint64_t most = bytes.size() - 100;
  for (size_t at = bytes.find("PK\1\2"); at != std::string::npos; at = bytes.find("PK\1\2", at + 4))
    bytes.replace(at + 20, 8, encoded(most, 4) + encoded(most, 4));
  write_bytes(path, bytes);
  CHECK(contains(misuse([&] { read_tensors(path); }), "side by side"));
}

TEST_CASE("attention files of each layout give the heads that they hold", "[unit]") {
  const auto single = round_trip({{"q", numbered({3, 2})}, {"k", numbered({5, 2})}, {"v", numbered({5, 4})}});
  CHECK(single.leading.empty());
  CHECK((single.nq == 3 && single.nk == 5 && single.d == 2 && single.dv == 4));
  CHECK(single.head(0, 0).V(4, 3) == numbered({5, 4}).values.back());

  const auto heads = round_trip({{"q", numbered({4, 3, 2})}, {"k", numbered({4, 5, 2})}, {"v", numbered({4, 5, 4})}});
  CHECK(heads.leading == std::vector<Index>{4});
  CHECK(heads.head(0, 2).Q(1, 1) == numbered({24}).values[2 * 6 + 3]);

  const auto batches =
      round_trip({{"q", numbered({2, 4, 3, 2})}, {"k", numbered({2, 4, 5, 2})}, {"v", numbered({2, 4, 5, 4})}});
  CHECK(batches.leading == std::vector<Index>{2, 4});
  CHECK(batches.head(1, 2).K(4, 0) == numbered({80}).values[40 + 2 * 10 + 8]);
  CHECK(batches.head(1, 3).V(4, 3) == numbered({160}).values.back());
  CHECK(contains(misuse([&] { batches.head(2, 0); }), "batches 0 to 1"));
  CHECK(contains(misuse([&] { batches.head(0, -1); }), "heads 0 to 3"));
}

TEST_CASE("grouped queries read the key head of their group", "[unit]") {
  const auto file = round_trip({{"q", numbered({6, 3, 2})}, {"k", numbered({2, 5, 2})}, {"v", numbered({2, 5, 1})}});
  CHECK((file.heads == 6 && file.key_heads == 2));
  for (Index head = 0; head < 6; ++head) CHECK(file.head(0, head).K(0, 0) == numbered({20}).values[head < 3 ? 0 : 10]);
}

TEST_CASE("what a method needs beside q, k and v is read by name, for all heads or for each", "[unit]") {
  const std::vector<Need> needs{{.name = "gate"}, {.name = "bias", .rows = "nq", .columns = "n"}, {.name = "absent"}};
  const NamedTensors heads{{"q", numbered({6, 3, 2})}, {"k", numbered({2, 5, 2})}, {"v", numbered({2, 5, 1})}};
  const auto with = [&](const std::string& name, const std::vector<Index>& shape) {
    NamedTensors tensors = heads;
    tensors[name] = numbered(shape);
    return tensors;
  };
  const auto gate_of = [&](const std::vector<Index>& shape, Index head) {
    return round_trip(with("gate", shape), needs).extras(0, head).at("gate");
  };
  for (Index head = 0; head < 6; ++head) {
    CHECK(gate_of({5, 1}, head).numbers(2, 0) == numbered({5}).values[2]);                         // of all heads
    CHECK(gate_of({6, 5, 1}, head).numbers(2, 0) == numbered({30}).values[5 * size_t(head) + 2]);  // of q's
    CHECK(gate_of({2, 5, 1}, head).numbers(2, 0) == numbered({10}).values[head < 3 ? 2 : 7]);      // of k's
  }
  CHECK(gate_of({5, 1}, 0).rows == Extra::Axis::keys);
  const auto bias = round_trip(with("bias", {6, 3, 5}), needs).extras(0, 4);
  CHECK(bias.size() == 1);
  CHECK(bias.at("bias").numbers(2, 1) == numbered({90}).values[4 * 15 + 11]);
  CHECK(bias.at("bias").columns == Extra::Axis::keys);
  CHECK(round_trip(with("other", {7, 7}), needs).extra.empty());  // of another method: not read

  const auto refusal = [&](const std::vector<Index>& shape) { return attention_refusal(with("gate", shape), needs); };
  CHECK(contains(refusal({4, 1}), "gate has the shape [4, 1]; expected [5, 1] (n x 1), or [6, 5, 1] for each head"));
  CHECK(contains(refusal({3, 5, 1}), "gate has the shape [3, 5, 1]; expected [5, 1]"));
  CHECK(contains(refusal({5}), "gate has the shape [5]"));
  NamedTensors infinite = with("gate", {5, 1});
  infinite["gate"].values[3] = INFINITY;
  CHECK(contains(attention_refusal(infinite, needs), "gate[3, 0] is inf"));
}

TEST_CASE("a shorter head has the first gates of its file", "[unit]") {
  const Folder folder;
  const Tensor gate = numbered({5, 1});
  write_safetensors(folder / "heads.safetensors",
                    {{"q", numbered({5, 2})}, {"k", numbered({5, 2})}, {"v", numbered({5, 4})}, {"gate", gate}},
                    Precision::f64);
  const Params input("inputs", "file:path=" + (folder / "heads.safetensors"));
  InputRequest request{.nq = 2, .nk = 3, .d = 2, .dv = 4, .streams = Streams(1)};
  CHECK(draw_head(input, request).extra.empty());
  request.needs = {{.name = "gate"}};
  const HeadData<double> head = draw_head(input, request);
  CHECK(head.K.rows() == 3);
  CHECK(head.extra.at("gate").numbers == Eigen::Map<const Matrix<double>>(gate.values.data(), 3, 1));
}

TEST_CASE("attention files whose tensors do not belong together are refused", "[unit]") {
  const Tensor q = numbered({3, 2}), k = numbered({5, 2}), v = numbered({5, 4});
  CHECK(attention_refusal({{"q", q}, {"k", k}, {"v", v}}) == "");
  CHECK(contains(attention_refusal({{"q", q}, {"k", k}}), "no tensor 'v'"));
  CHECK(contains(attention_refusal({{"q", q}, {"k", numbered({5, 3})}, {"v", v}}), "d is 2 for q and 3 for k"));
  CHECK(contains(attention_refusal({{"q", q}, {"k", k}, {"v", numbered({4, 4})}}), "5 keys and v 4 values"));
  CHECK(contains(attention_refusal({{"q", numbered({6})}, {"k", k}, {"v", v}}), "[n, d]"));
  CHECK(contains(attention_refusal({{"q", numbered({1, 1, 1, 3, 2})}, {"k", k}, {"v", v}}), "[n, d]"));
  CHECK(contains(attention_refusal({{"q", q}, {"k", numbered({1, 5, 2})}, {"v", v}}), "the same layout"));
  CHECK(contains(attention_refusal({{"q", numbered({0, 2})}, {"k", k}, {"v", v}}), "at least 1"));
  const auto with_heads = [](Index q_heads, Index k_heads, Index v_heads) {
    return attention_refusal(
        {{"q", numbered({q_heads, 3, 2})}, {"k", numbered({k_heads, 5, 2})}, {"v", numbered({v_heads, 5, 4})}});
  };
  CHECK(contains(with_heads(4, 2, 4), "different heads"));
  CHECK(contains(with_heads(4, 3, 3), "not a multiple"));
  CHECK(contains(with_heads(2, 4, 4), "not a multiple"));
  CHECK(contains(
      attention_refusal({{"q", numbered({2, 1, 3, 2})}, {"k", numbered({1, 1, 5, 2})}, {"v", numbered({1, 1, 5, 4})}}),
      "batches differ"));
}

TEST_CASE("values that are not finite are refused with their place", "[unit]") {
  const Tensor q = numbered({3, 2}), k = numbered({5, 2});
  for (const double bad : {std::nan(""), infinity, -infinity}) {
    Tensor v = numbered({5, 4});
    v.values[4 * 3 + 2] = bad;
    CHECK(contains(attention_refusal({{"q", q}, {"k", k}, {"v", v}}), "v[3, 2] is"));
  }
}

TEST_CASE("matrices and tensors convert into each other", "[unit]") {
  const Matrix<double> X = as_matrix(numbered({2, 3}), "x");
  CHECK((X.rows() == 2 && X.cols() == 3 && X(1, 2) == 2.25));
  CHECK(as_tensor(X).shape == std::vector<Index>{2, 3});
  CHECK(as_tensor(X).values == numbered({2, 3}).values);
  CHECK(as_matrix(numbered({3}), "x").rows() == 1);
  CHECK(as_matrix(numbered({0, 3}), "x").size() == 0);
  CHECK(contains(misuse([] { as_matrix(numbered({1, 2, 3}), "x"); }), "[1, 2, 3]"));
  CHECK(contains(misuse([] { as_matrix({{}, {1}}, "x"); }), "one or two axes"));
}

// The mutations: bytes changed, runs overwritten, the end cut, a part repeated. Half of them fall into the first 300
// bytes or the last 300, where headers and zip directories are.
namespace {

std::string mutated(std::string bytes, std::mt19937_64& generator) {
  const auto below = [&](size_t bound) { return static_cast<size_t>(generator() % std::max<size_t>(bound, 1)); };
  const auto place = [&] {
    const size_t near = below(std::min<size_t>(bytes.size(), 300));
    switch (below(4)) {
      case 0:
        return near;
      case 1:
        return bytes.size() - 1 - near;
      default:
        return below(bytes.size());
    }
  };
  for (size_t changes = 1 + below(3); changes-- > 0 && !bytes.empty();) {
    const size_t at = place();
    switch (below(6)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        bytes[at] = static_cast<char>(below(256));
        break;
      case 2:
        bytes[at] = "0123456789[]{}(),:\"'-.eL "[below(25)];
        break;
      case 3:
        for (size_t i = at; i < std::min(at + 1 + below(8), bytes.size()); ++i) bytes[i] = below(2) ? '\xff' : '\0';
        break;
      case 4:
        bytes.resize(at);
        break;
      default:
        bytes.insert(at, bytes.substr(place(), 1 + below(40)));
    }
  }
  return bytes;
}

// How many of the mutated files were read, and how many refused. Anything but Misuse ends the test.
std::pair<int, int> read_mutations(const std::string& valid, const std::string& name, int count) {
  const Folder folder;
  std::mt19937_64 generator(20261121);
  int read = 0, refused = 0;
  for (int i = 0; i < count; ++i) {
    const auto path = write_bytes(folder / name, mutated(valid, generator));
    INFO(name << ", mutation " << i);
    const std::string message = misuse([&] { read_attention_file(path); });
    if (message.empty())
      ++read;
    else
      ++refused;
    CHECK(message.find('\n') == std::string::npos);
  }
  return {read, refused};
}

}  // namespace

TEST_CASE("twenty thousand mutated files are read or refused, never anything else", "[unit]") {
  const Folder folder;
  const NamedTensors tensors{{"q", numbered({2, 3, 2})}, {"k", numbered({1, 5, 2})}, {"v", numbered({1, 5, 4})}};
  write_safetensors(folder / "t.safetensors", tensors, Precision::f32);
  const auto plain = bytes_of_file(folder / "t.safetensors");
  std::vector<std::pair<std::string, std::string>> arrays;
  for (const auto& [name, tensor] : tensors)
    arrays.emplace_back(name + ".npy",
                        npy(fmt::format("{{'descr': '<f4', 'fortran_order': True, 'shape': ({}, {}, {}), }}",
                                        tensor.shape[0], tensor.shape[1], tensor.shape[2]),
                            float32_bytes(tensor.values)));
  const auto stored = bytes_of_file(write_zip(folder / "stored.npz", arrays, ZIP_CM_STORE));
  const auto deflated = bytes_of_file(write_zip(folder / "deflated.npz", arrays, ZIP_CM_DEFLATE));
  for (const auto& [bytes, name, count] :
       {std::tuple{plain, "m.safetensors", 10'000}, {stored, "s.npz", 5'000}, {deflated, "d.npz", 5'000}}) {
    const auto [read, refused] = read_mutations(bytes, name, count);
    INFO(name << ": " << read << " read, " << refused << " refused");
    CHECK(read > 0);
    CHECK(refused > count / 2);
  }
}

}  // namespace attnbench::tensor_file_test
