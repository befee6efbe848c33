#include "harness/inputs/checkpoint/gguf.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <concepts>
#include <limits>
#include <utility>

#include "harness/errors/error.hpp"
#include "harness/inputs/checkpoint/little_endian.hpp"
#include "harness/inputs/tensor_formats.hpp"

namespace attnbench {

namespace {

// The names nearest to the one that a file lacks. A vocabulary of names would not fit in a message.
template <class Named>
std::string nearest_of(const std::string& name, const std::map<std::string, Named>& present) {
  constexpr size_t most_listed = 32;
  std::vector<std::string> listed;
  for (const auto& [there, unused] : present)
    if (listed.size() < most_listed) listed.push_back(shown(there));
  return nearest_names(shown(name), listed);
}

template <class T>
struct Wanted;  // what messages call T
template <>
struct Wanted<std::string> {
  static constexpr const char* one = "a string";
  static constexpr const char* many = "an array of strings";
};
template <>
struct Wanted<bool> {
  static constexpr const char* one = "a bool";
};
template <>
struct Wanted<Index> {
  static constexpr const char* one = "an integer of at most 2^63 - 1";
  static constexpr const char* many = "an array of integers of at most 2^63 - 1";
};
template <>
struct Wanted<double> {
  static constexpr const char* one = "a float, or an integer below 2^53";
  static constexpr const char* many = "an array of floats, or of integers below 2^53";
};
template <class T>
struct Wanted<std::vector<T>> {
  static constexpr const char* one = Wanted<T>::many;
};

// Calls take(number) with the number of that type in the first bytes; false if the type has no number.
template <class Take>
bool with_number(GgufValueType type, const unsigned char* bytes, const Take& take) {
  switch (type) {
    case GgufValueType::uint8:
      return take(little_endian<std::uint8_t>(bytes));
    case GgufValueType::int8:
      return take(little_endian<std::int8_t>(bytes));
    case GgufValueType::uint16:
      return take(little_endian<std::uint16_t>(bytes));
    case GgufValueType::int16:
      return take(little_endian<std::int16_t>(bytes));
    case GgufValueType::uint32:
      return take(little_endian<std::uint32_t>(bytes));
    case GgufValueType::int32:
      return take(little_endian<std::int32_t>(bytes));
    case GgufValueType::uint64:
      return take(little_endian<std::uint64_t>(bytes));
    case GgufValueType::int64:
      return take(little_endian<std::int64_t>(bytes));
    case GgufValueType::float32:
      return take(little_endian<float>(bytes));
    case GgufValueType::float64:
      return take(little_endian<double>(bytes));
    case GgufValueType::truth:
    case GgufValueType::text:
    case GgufValueType::array:
      return false;
  }
  return false;
}

// Each takes the value of that type from the front of `bytes` into `out`; false if out's type does not hold it.
bool taken(GgufValueType type, std::span<const unsigned char>& bytes, std::string& out) {
  if (type != GgufValueType::text) return false;
  const auto length = little_endian<std::uint64_t>(bytes.data());
  out.assign(reinterpret_cast<const char*>(bytes.data()) + sizeof length, length);
  bytes = bytes.subspan(sizeof length + length);
  return true;
}

bool taken(GgufValueType type, std::span<const unsigned char>& bytes, bool& out) {
  if (type != GgufValueType::truth) return false;
  out = bytes.front() != 0;
  bytes = bytes.subspan(1);
  return true;
}

bool taken(GgufValueType type, std::span<const unsigned char>& bytes, Index& out) {
  const bool fits = with_number(type, bytes.data(), [&]<class Number>(Number number) {
    if constexpr (std::integral<Number>) {
      out = static_cast<Index>(+number);  // int8 becomes an int first, which clang-tidy asks for
      return std::in_range<Index>(number);
    } else {
      return false;
    }
  });
  if (fits) bytes = bytes.subspan(gguf_width(type));
  return fits;
}

bool taken(GgufValueType type, std::span<const unsigned char>& bytes, double& out) {
  const bool fits = with_number(type, bytes.data(), [&]<class Number>(Number number) {
    out = static_cast<double>(number);
    if constexpr (std::floating_point<Number>) return true;
    constexpr auto rounded = Index{1} << std::numeric_limits<double>::digits;  // 2^53 + 1 becomes this
    return std::abs(out) < static_cast<double>(rounded);
  });
  if (fits) bytes = bytes.subspan(gguf_width(type));
  return fits;
}

template <class T>
bool assigned(const GgufValue& value, T& out) {
  auto bytes = value.bytes;
  return taken(value.type, bytes, out);
}

template <class T>
bool assigned(const GgufValue& value, std::vector<T>& out) {
  // The element type is checked before the first element, since an empty array has a type as well.
  constexpr bool text = std::same_as<T, std::string>;
  if (value.type != GgufValueType::array || text != (value.element == GgufValueType::text)) return false;
  if (!text && !with_number(value.element, std::array<unsigned char, 8>{}.data(),
                            [](auto number) { return std::floating_point<T> || std::integral<decltype(number)>; }))
    return false;
  out.resize(value.count);  // the header's reader has seen as many elements
  auto bytes = value.bytes;
  for (auto& one : out)
    if (!taken(value.element, bytes, one)) return false;
  return true;
}

// " and is 18446744073709551615": an integer may be of the wrong size and not of the wrong type.
std::string shown_integer(const GgufValue& value) {
  std::string text;
  with_number(value.type, value.bytes.data(), [&]<class Number>(Number number) {
    if constexpr (std::integral<Number>) text = fmt::format(" and is {}", number);
    return true;
  });
  return text;
}

}  // namespace

GgufFile::GgufFile(const std::filesystem::path& path)
    : file_(path.string()), mapped_(path, "a .gguf file"), header_(read_gguf_header(mapped_.bytes(), file_)) {}

const GgufTensor& GgufFile::tensor(const std::string& name) const {
  const auto found = header_.tensors.find(name);
  if (found == header_.tensors.end())
    throw Misuse(fmt::format("{}: no tensor '{}' among its {}{}", file_, shown(name), header_.tensors.size(),
                             nearest_of(name, header_.tensors)));
  return found->second;
}

void GgufFile::read(const std::string& name, std::span<float> out) const {
  const GgufTensor& from = tensor(name);
  if (!from.type->dequantise)
    throw Misuse(fmt::format("{}: tensor '{}' has the type {}; expected one of {}: convert the model to one of them",
                             file_, shown(name), from.type->name, dequantised_gguf_types()));
  if (out.size() != static_cast<size_t>(from.count))
    throw Misuse(fmt::format("{}: tensor '{}' of shape {} was asked for as {} numbers; expected {}", file_, shown(name),
                             shown(from.shape), out.size(), from.count));
  from.type->dequantise(from.bytes, out.data());
}

template <class T>
std::optional<T> GgufFile::metadata_if_there(const std::string& key) const {
  const auto found = header_.metadata.find(key);
  if (found == header_.metadata.end()) return std::nullopt;
  T value{};
  if (assigned(found->second, value)) return value;
  throw Misuse(fmt::format("{}: metadata key '{}' has the type {}{}; expected {}", file_, shown(key),
                           gguf_name(found->second), shown_integer(found->second), Wanted<T>::one));
}

template <class T>
T GgufFile::metadata(const std::string& key) const {
  if (auto value = metadata_if_there<T>(key)) return *std::move(value);
  throw Misuse(fmt::format("{}: no metadata key '{}' among its {}, expected {}{}", file_, shown(key),
                           header_.metadata.size(), Wanted<T>::one, nearest_of(key, header_.metadata)));
}

template std::string GgufFile::metadata(const std::string&) const;
template bool GgufFile::metadata(const std::string&) const;
template Index GgufFile::metadata(const std::string&) const;
template double GgufFile::metadata(const std::string&) const;
template std::vector<std::string> GgufFile::metadata(const std::string&) const;
template std::vector<Index> GgufFile::metadata(const std::string&) const;
template std::vector<double> GgufFile::metadata(const std::string&) const;
template std::optional<std::string> GgufFile::metadata_if_there(const std::string&) const;
template std::optional<bool> GgufFile::metadata_if_there(const std::string&) const;
template std::optional<Index> GgufFile::metadata_if_there(const std::string&) const;
template std::optional<double> GgufFile::metadata_if_there(const std::string&) const;
template std::optional<std::vector<std::string>> GgufFile::metadata_if_there(const std::string&) const;
template std::optional<std::vector<Index>> GgufFile::metadata_if_there(const std::string&) const;
template std::optional<std::vector<double>> GgufFile::metadata_if_there(const std::string&) const;

}  // namespace attnbench
