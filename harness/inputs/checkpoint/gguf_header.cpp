// GGUF (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md), versions 2 and 3, little endian:
//   "GGUF", version (uint32), number of tensors, number of metadata entries (both uint64),
//   entries   key, type (uint32), value
//   tensors   name, number of axes (uint32), axes (uint64, the fastest first), type (uint32), offset (uint64)
//   padding to a multiple of the metadata key general.alignment (32 if it is absent), then the blocks of the tensors
// Offsets count from the end of the padding and are multiples of the alignment. A text is its length (uint64) and its
// bytes; an array is the type of its elements (uint32), their number (uint64) and the elements, which may be arrays.
#include "harness/inputs/checkpoint/gguf_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "harness/errors/error.hpp"
#include "harness/inputs/checkpoint/little_endian.hpp"
#include "harness/inputs/tensor_formats.hpp"

namespace attnbench {

namespace {

constexpr std::uint32_t value_types = 13;
constexpr std::uint32_t most_gguf_axes = 4;  // of ggml
// Tools write arrays of arrays at most. The bound keeps hostile headers from filling the stack.
constexpr int deepest_array = 4;

struct ValueTypeFacts {
  const char* name;
  size_t width;
};
constexpr ValueTypeFacts value_type_facts[value_types] = {
    {"uint8", 1}, {"int8", 1},   {"uint16", 2}, {"int16", 2},  {"uint32", 4}, {"int32", 4},  {"float32", 4},
    {"bool", 1},  {"string", 0}, {"array", 0},  {"uint64", 8}, {"int64", 8},  {"float64", 8}};

const ValueTypeFacts& facts_of(GgufValueType type) { return value_type_facts[static_cast<std::uint32_t>(type)]; }

// Takes the header's bytes one after the other. `where` names in messages the entry to which they belong.
class GgufCursor {
 public:
  GgufCursor(std::span<const unsigned char> bytes, std::string file) : bytes_(bytes), file_(std::move(file)) {}

  const std::string& file() const { return file_; }
  size_t position() const { return position_; }
  std::span<const unsigned char> since(size_t begin) const { return bytes_.subspan(begin, position_ - begin); }

  // count * width bytes, whose product may overflow.
  std::span<const unsigned char> take(std::uint64_t count, size_t width, const std::string& where) {
    const std::uint64_t left = bytes_.size() - position_;
    std::uint64_t needed = 0;
    const bool overflows = __builtin_mul_overflow(count, width, &needed);
    if (overflows || needed > left)
      throw Misuse(fmt::format(
          "{}: {} needs {} bytes at byte {} and the file has {} more; copy the file again (cut short?)", file_, where,
          overflows ? fmt::format("{} times {}", count, width) : fmt::format("{}", needed), position_, left));
    const auto taken = bytes_.subspan(position_, needed);
    position_ += taken.size();
    return taken;
  }
  template <class T>
  T number(const std::string& where) {
    return little_endian<T>(take(1, sizeof(T), where).data());
  }
  std::string_view text(const std::string& where) {
    const auto length = number<std::uint64_t>(where);
    const auto bytes = take(length, 1, where);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

 private:
  std::span<const unsigned char> bytes_;
  size_t position_ = 0;
  std::string file_;
};

GgufValueType value_type(GgufCursor& cursor, const std::string& where) {
  const auto code = cursor.number<std::uint32_t>(where);
  if (code >= value_types)
    throw Misuse(fmt::format("{}: {} has the value type {}; expected 0 (uint8) to 12 (float64): write the file again",
                             cursor.file(), where, code));
  return static_cast<GgufValueType>(code);
}

// Checks `count` values and moves the cursor past them.
void pass_values(GgufCursor& cursor, GgufValueType type, std::uint64_t count, int depth, const std::string& where) {
  if (const size_t width = gguf_width(type)) {
    const auto bytes = cursor.take(count, width, where);
    const bool truths =
        type != GgufValueType::truth || std::all_of(bytes.begin(), bytes.end(), [](auto b) { return b < 2; });
    if (!truths)
      throw Misuse(
          fmt::format("{}: {} has a bool that is neither 0 nor 1; write the file again", cursor.file(), where));
    return;
  }
  for (std::uint64_t i = 0; i < count; ++i) {  // each takes at least 8 bytes, so a false count ends soon
    if (type == GgufValueType::text) {
      cursor.text(where);
      continue;
    }
    if (depth == deepest_array)
      throw Misuse(fmt::format("{}: {} has arrays nested more than {} deep; expected at most that: flatten them",
                               cursor.file(), where, deepest_array));
    const auto element = value_type(cursor, where);
    const auto elements = cursor.number<std::uint64_t>(where);
    pass_values(cursor, element, elements, depth + 1, where);
  }
}

void read_entry(GgufCursor& cursor, std::uint64_t which, std::map<std::string, GgufValue>& metadata) {
  const std::string key(cursor.text(fmt::format("the key of metadata entry {}", which)));
  const std::string where = fmt::format("metadata key '{}'", shown(key));
  GgufValue value{.type = value_type(cursor, where), .bytes = {}};
  size_t begin = cursor.position();
  if (value.type == GgufValueType::array) {
    value.element = value_type(cursor, where);
    value.count = cursor.number<std::uint64_t>(where);
    begin = cursor.position();
    pass_values(cursor, value.element, value.count, 1, where);
  } else {
    pass_values(cursor, value.type, 1, 0, where);
  }
  value.bytes = cursor.since(begin);
  if (!metadata.emplace(key, value).second)
    throw Misuse(fmt::format("{}: the header has the {} twice; expected each key once: write the file again",
                             cursor.file(), where));
}

// A tensor as its entry says, before its offset is compared with the file and with other tensors.
struct Placed {
  const std::string* name;
  GgufTensor* tensor;
  std::uint64_t begin, bytes;
};

const GgufType& tensor_type(GgufCursor& cursor, const std::string& where) {
  const auto code = cursor.number<std::uint32_t>(where);
  const GgufType* type = gguf_type(code);
  if (type && type->numbers > 0) return *type;
  throw Misuse(fmt::format(
      "{}: {} has the type {}{}; expected one of {}: convert the model to one of them", cursor.file(), where, code,
      type ? fmt::format(" ({}, which ggml has removed)", type->name) : "", dequantised_gguf_types()));
}

Placed read_tensor(GgufCursor& cursor, std::uint64_t which, std::map<std::string, GgufTensor>& tensors) {
  const std::string name(cursor.text(fmt::format("the name of tensor {}", which)));
  const std::string where = fmt::format("tensor '{}'", shown(name));
  const auto axes = cursor.number<std::uint32_t>(where);
  if (axes > most_gguf_axes)
    throw Misuse(fmt::format("{}: {} has {} axes; expected at most {}: write the file again", cursor.file(), where,
                             axes, most_gguf_axes));
  std::vector<Index> shape(axes);
  for (size_t axis = axes; axis-- > 0;) {
    const auto size = cursor.number<std::uint64_t>(where);
    if (size > static_cast<std::uint64_t>(std::numeric_limits<Index>::max()))
      throw Misuse(fmt::format("{}: {} has an axis of {}; expected at most 2^63 - 1: write the file again",
                               cursor.file(), where, size));
    shape[axis] = static_cast<Index>(size);
  }
  const GgufType& type = tensor_type(cursor, where);
  const auto begin = cursor.number<std::uint64_t>(where);
  const auto count = number_count(shape);
  const Index row = shape.empty() ? 1 : shape.back();
  if (row % type.numbers != 0)
    throw Misuse(fmt::format("{}: {} of shape {} has rows of {} numbers; expected a multiple of {}, the block of {}",
                             cursor.file(), where, shown(shape), row, type.numbers, type.name));
  Index bytes = 0;
  if (!count || __builtin_mul_overflow(*count / type.numbers, type.bytes, &bytes))
    throw Misuse(fmt::format("{}: {} of shape {} has more than 2^63 numbers or bytes; expected less than the file has",
                             cursor.file(), where, shown(shape)));
  const auto [place, fresh] = tensors.emplace(name, GgufTensor{&type, std::move(shape), *count, {}});
  if (!fresh)
    throw Misuse(fmt::format("{}: the header has the {} twice; expected each name once: write the file again",
                             cursor.file(), where));
  return {&place->first, &place->second, begin, static_cast<std::uint64_t>(bytes)};
}

// The cursor's file has 4 bytes of magic, a version, and two counts.
void check_version(GgufCursor& cursor) {
  const std::string where = "the beginning of the header";
  const auto magic = cursor.take(4, 1, where);
  const std::string_view text(reinterpret_cast<const char*>(magic.data()), magic.size());
  if (text != "GGUF")
    throw Misuse(fmt::format("{}: begins with '{}'; expected 'GGUF', a GGUF file", cursor.file(), shown(text)));
  const auto version = cursor.number<std::uint32_t>(where);
  if (version == 2 || version == 3) return;
  if ((version & 0xffff) == 0 && version != 0)
    throw Misuse(
        fmt::format("{}: a big-endian GGUF file (version {}); expected little endian: convert it with "
                    "gguf-convert-endian of PyPI's gguf",
                    cursor.file(), __builtin_bswap32(version)));
  throw Misuse(fmt::format("{}: GGUF version {}; expected 2 or 3: {}", cursor.file(), version,
                           version == 1 ? "convert the model again" : "attnbench knows no other"));
}

std::uint64_t alignment_of(const GgufHeader& header, const std::string& file) {
  const auto entry = header.metadata.find("general.alignment");
  if (entry == header.metadata.end()) return 32;
  const GgufValue& value = entry->second;
  if (value.type != GgufValueType::uint32)
    throw Misuse(
        fmt::format("{}: metadata key 'general.alignment' has the type {}; expected uint32: write the file again", file,
                    gguf_name(value)));
  const auto alignment = little_endian<std::uint32_t>(value.bytes.data());
  if (!std::has_single_bit(alignment))
    throw Misuse(fmt::format("{}: metadata key 'general.alignment' is {}; expected a power of 2: write the file again",
                             file, alignment));
  return alignment;
}

// Gives each tensor its bytes. They lie in `data`, begin at a multiple of the alignment and do not overlap. Gaps are
// allowed: writers pad each tensor.
void place_tensors(std::vector<Placed>& placed, std::span<const unsigned char> data, std::uint64_t alignment,
                   const std::string& file) {
  std::sort(placed.begin(), placed.end(), [](auto& a, auto& b) { return a.begin < b.begin; });
  const Placed* before = nullptr;
  for (const auto& one : placed) {
    const std::string where = fmt::format("{}: tensor '{}'", file, shown(*one.name));
    if (one.begin % alignment != 0)
      throw Misuse(
          fmt::format("{} begins at byte {} of the data; expected a multiple of {}, the alignment: write the file "
                      "again",
                      where, one.begin, alignment));
    if (one.begin > data.size() || one.bytes > data.size() - one.begin)
      throw Misuse(
          fmt::format("{} has {} bytes from byte {} of the data; expected them within the {} bytes of data: copy "
                      "the file again (cut short?)",
                      where, one.bytes, one.begin, data.size()));
    if (before && one.bytes > 0 && one.begin < before->begin + before->bytes)
      throw Misuse(
          fmt::format("{} begins at byte {} of the data; expected {} or more, where tensor '{}' ends (they "
                      "overlap): write the file again",
                      where, one.begin, before->begin + before->bytes, shown(*before->name)));
    one.tensor->bytes = data.subspan(one.begin, one.bytes);
    if (one.bytes > 0) before = &one;
  }
}

}  // namespace

size_t gguf_width(GgufValueType type) { return facts_of(type).width; }

std::string gguf_name(GgufValueType type) { return facts_of(type).name; }

std::string gguf_name(const GgufValue& value) {
  return gguf_name(value.type) + (value.type == GgufValueType::array ? " of " + gguf_name(value.element) : "");
}

GgufHeader read_gguf_header(std::span<const unsigned char> bytes, const std::string& file) {
  GgufCursor cursor(bytes, file);
  check_version(cursor);
  const auto tensors = cursor.number<std::uint64_t>("the number of tensors");
  const auto entries = cursor.number<std::uint64_t>("the number of metadata entries");
  GgufHeader header;
  for (std::uint64_t i = 0; i < entries; ++i) read_entry(cursor, i, header.metadata);
  std::vector<Placed> placed;
  for (std::uint64_t i = 0; i < tensors; ++i) placed.push_back(read_tensor(cursor, i, header.tensors));
  const std::uint64_t alignment = alignment_of(header, file);
  const std::uint64_t data_begin = (cursor.position() + alignment - 1) / alignment * alignment;
  place_tensors(placed, bytes.subspan(std::min<std::uint64_t>(data_begin, bytes.size())), alignment, file);
  return header;
}

}  // namespace attnbench
