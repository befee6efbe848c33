// Safetensors (https://huggingface.co/docs/safetensors): 8 bytes of header length (little endian), a JSON header
//   {"name": {"dtype": "F32", "shape": [n, d], "data_offsets": [begin, end]}, ..., "__metadata__": {"key": "text"}}
// and the data, row-major and little endian, which the offsets cover without overlap or gap. The header is parsed as a
// stream of tokens, so nothing is built from a header that nests deeper, repeats a key or is malformed.
#include "harness/inputs/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "harness/errors/error.hpp"
#include "harness/inputs/tensor_formats.hpp"

namespace attnbench {

namespace {

using Json = nlohmann::json;

constexpr std::uint64_t length_bytes = 8;
constexpr std::uint64_t longest_header = 100'000'000;  // the limit of the reference implementation

struct Dtype {
  std::string_view name;
  Index bits;
  std::optional<FloatFormat> floats = std::nullopt;  // set if this reader decodes the type
};
constexpr Dtype dtypes[] = {{"F64", 64, FloatFormat::float64},
                            {"F32", 32, FloatFormat::float32},
                            {"F16", 16, FloatFormat::float16},
                            {"BF16", 16, FloatFormat::bfloat16},
                            {"I64", 64},
                            {"U64", 64},
                            {"I32", 32},
                            {"U32", 32},
                            {"I16", 16},
                            {"U16", 16},
                            {"I8", 8},
                            {"U8", 8},
                            {"BOOL", 8},
                            {"F8_E4M3", 8},
                            {"F8_E5M2", 8},
                            {"F8_E8M0", 8},
                            {"C64", 64},
                            {"F6_E2M3", 6},
                            {"F6_E3M2", 6},
                            {"F4", 4}};

struct Entry {
  std::string name;
  const Dtype* dtype = nullptr;
  std::vector<Index> shape = {};
  std::vector<std::uint64_t> offsets = {};  // begin and end
  bool has_shape = false, has_offsets = false;
};

// Takes the header's tokens one by one. Throws Misuse at the first that the form above does not allow.
class HeaderReader final : public nlohmann::json_sax<Json> {
 public:
  explicit HeaderReader(std::string file) : file_(std::move(file)) {}

  std::vector<Entry> entries;

  bool start_object(size_t) override {
    if (place_ == Place::outside) {
      place_ = Place::names;
    } else if (place_ == Place::names) {
      place_ = name_ == "__metadata__" ? Place::metadata : Place::fields;
      if (place_ == Place::fields) entries.push_back({.name = name_});
      inner_keys_.clear();
    } else {
      refuse("an object");
    }
    return true;
  }
  bool end_object() override {
    if (place_ == Place::fields) {
      const Entry& entry = entries.back();
      if (!entry.dtype || !entry.has_shape || !entry.has_offsets)
        throw Misuse(fmt::format("{}: tensor '{}' lacks one of dtype, shape, data_offsets; expected all three", file_,
                                 shown(entry.name)));
    }
    place_ = Place::names;
    return true;
  }
  bool key(string_t& text) override {
    if (!(place_ == Place::names ? names_ : inner_keys_).insert(text).second)
      throw Misuse(fmt::format("{}: the header has the key '{}' twice; write each tensor once", file_, shown(text)));
    (place_ == Place::names ? name_ : field_) = text;
    if (place_ == Place::fields && text != "dtype" && text != "shape" && text != "data_offsets")
      throw Misuse(fmt::format("{}: tensor '{}' has the field '{}'; expected dtype, shape and data_offsets", file_,
                               shown(name_), shown(text)));
    return true;
  }
  bool start_array(size_t) override {
    if (place_ != Place::fields || field_ == "dtype") refuse("a list");
    place_ = Place::numbers;
    (field_ == "shape" ? entries.back().has_shape : entries.back().has_offsets) = true;
    return true;
  }
  bool end_array() override {
    place_ = Place::fields;
    if (field_ == "data_offsets" && entries.back().offsets.size() != 2) refuse("a list without two numbers");
    return true;
  }
  bool string(string_t& text) override {
    if (place_ == Place::metadata) return true;
    if (place_ != Place::fields || field_ != "dtype") refuse("a text");
    const auto found = std::find_if(std::begin(dtypes), std::end(dtypes), [&](auto& t) { return t.name == text; });
    if (found == std::end(dtypes))
      throw Misuse(fmt::format("{}: tensor '{}' has the unknown dtype '{}'; expected F16, BF16, F32 or F64", file_,
                               shown(name_), shown(text)));
    entries.back().dtype = found;
    return true;
  }
  bool number_unsigned(number_unsigned_t number) override {
    if (place_ != Place::numbers) refuse("a number");
    if (field_ == "shape") {
      if (number > static_cast<std::uint64_t>(std::numeric_limits<Index>::max())) refuse("too large a number");
      if (entries.back().shape.size() == most_axes) refuse("a list of more than 16 axes");
      entries.back().shape.push_back(static_cast<Index>(number));
    } else {
      if (entries.back().offsets.size() == 2) refuse("a list without two numbers");
      entries.back().offsets.push_back(number);
    }
    return true;
  }
  bool number_integer(number_integer_t) override { return refuse("a negative number"); }
  bool number_float(number_float_t, const string_t&) override { return refuse("a number that is not an integer"); }
  bool null() override { return refuse("null"); }
  bool boolean(bool) override { return refuse("a truth value"); }
  bool binary(binary_t&) override { return refuse("binary data"); }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override {
    throw Misuse(fmt::format("{}: the header is not JSON at its byte {}; write the file again", file_, position));
  }

 private:
  enum class Place { outside, names, metadata, fields, numbers };

  bool refuse(const char* what) const {
    throw Misuse(
        fmt::format("{}: the header has {} at '{}'; expected a tensor as {{dtype: text, shape: [sizes], data_offsets: "
                    "[begin, end]}}",
                    file_, what, shown(name_.empty() ? "its beginning" : name_)));
  }

  std::string file_;
  Place place_ = Place::outside;
  std::string name_, field_;
  std::set<std::string> names_, inner_keys_;
};

class File {
 public:
  explicit File(const std::filesystem::path& path)
      : path_(path), size_(size_of_regular_file(path)), stream_(path, std::ios::binary) {
    if (!stream_) throw Misuse(fmt::format("{}: cannot be opened; check its permissions", path.string()));
  }

  std::uint64_t size() const { return size_; }
  void seek(std::uint64_t position) { stream_.seekg(static_cast<std::streamoff>(position)); }
  void read(char* to, size_t count) {
    stream_.read(to, static_cast<std::streamsize>(count));
    if (!stream_) throw Misuse(fmt::format("{}: cannot be read to its end; write the file again", path_.string()));
  }

 private:
  std::filesystem::path path_;
  std::uint64_t size_;
  std::ifstream stream_;
};

std::string read_header(File& file, const std::string& name) {
  if (file.size() < length_bytes)
    throw Misuse(
        fmt::format("{}: {} bytes are too few for a safetensors file; expected 8 bytes of header length and the header",
                    name, file.size()));
  unsigned char bytes[length_bytes];
  file.read(reinterpret_cast<char*>(bytes), length_bytes);
  std::uint64_t length = 0;
  for (size_t b = length_bytes; b-- > 0;) length = (length << 8) | bytes[b];
  if (length > file.size() - length_bytes || length > longest_header)
    throw Misuse(
        fmt::format("{}: a header of {} bytes in a file of {}; expected at most {} (cut short, or no safetensors file)",
                    name, length, file.size(), std::min(file.size() - length_bytes, longest_header)));
  std::string header(length, '\0');
  file.read(header.data(), header.size());
  // The JSON library treats a NUL as the end of its input and would ignore the rest.
  if (!header.starts_with('{') || header.find('\0') != std::string::npos)
    throw Misuse(fmt::format("{}: the header is not a JSON object; expected {{ at byte 8, and text", name));
  return header;
}

// Checks that every tensor has shape times dtype bytes, and that together they are the data: no overlap, no gap,
// nothing after it.
void check_layout(std::vector<Entry>& entries, std::uint64_t data_size, const std::string& file) {
  std::sort(entries.begin(), entries.end(), [](auto& a, auto& b) { return a.offsets < b.offsets; });
  std::uint64_t covered = 0;
  for (const auto& [name, dtype, shape, offsets, has_shape, has_offsets] : entries) {
    const std::uint64_t begin = offsets[0], end = offsets[1];
    if (begin > end || end > data_size)
      throw Misuse(
          fmt::format("{}: tensor '{}' has the offsets [{}, {}]; expected begin <= end <= {}, the bytes of data "
                      "(cut short?)",
                      file, shown(name), begin, end, data_size));
    const auto count = number_count(shape);
    Index bits = 0;
    if (!count || __builtin_mul_overflow(*count, dtype->bits, &bits) || bits % 8 != 0 ||
        static_cast<std::uint64_t>(bits / 8) != end - begin)
      throw Misuse(
          fmt::format("{}: tensor '{}' of shape {} and dtype {} has {} bytes of data; expected the product of "
                      "the sizes times {} bits",
                      file, shown(name), shown(shape), dtype->name, end - begin, dtype->bits));
    if (begin != covered)
      throw Misuse(
          fmt::format("{}: tensor '{}' begins at byte {} of the data; expected {}, where the one before ends ({})",
                      file, shown(name), begin, covered, begin < covered ? "they overlap" : "a gap"));
    covered = end;
  }
  if (covered != data_size)
    throw Misuse(fmt::format("{}: the tensors end at byte {} of the data; expected {}, the end of the file", file,
                             covered, data_size));
}

// A file whose header was read and checked.
struct Opened {
  explicit Opened(const std::filesystem::path& path) : file(path) {
    const std::string header = read_header(file, path.string());
    HeaderReader reader(path.string());
    Json::sax_parse(header, &reader);
    data_begin = length_bytes + header.size();
    entries = std::move(reader.entries);
    check_layout(entries, file.size() - data_begin, path.string());
  }

  // Calls take(numbers) for the tensor's numbers in parts of at most `most`, decoded.
  template <class Take>
  void read(const std::filesystem::path& path, const Entry& entry, Index most, const Take& take) {
    if (!entry.dtype->floats)
      throw Misuse(fmt::format("{}: tensor '{}' has the dtype {}; expected F16, BF16, F32 or F64: convert it",
                               path.string(), shown(entry.name), entry.dtype->name));
    file.seek(data_begin + entry.offsets[0]);
    const Index count = *number_count(entry.shape);
    for (Index first = 0; first == 0 || first < count; first += most)
      take(decoded(
          std::min(most, count - first), *entry.dtype->floats, std::endian::little,
          fmt::format("{}: tensor '{}'", path.string(), shown(entry.name)),
          [&](std::span<unsigned char> bytes) { file.read(reinterpret_cast<char*>(bytes.data()), bytes.size()); }));
  }

  File file;
  std::uint64_t data_begin = 0;
  std::vector<Entry> entries;
};

}  // namespace

NamedTensors read_safetensors(const std::filesystem::path& path, const std::vector<std::string>& only,
                              const std::vector<std::string>& if_there, std::vector<std::string>* left_out) {
  Opened opened(path);
  std::vector<std::string> present;
  std::map<std::string_view, const Entry*> by_name;
  for (const auto& entry : opened.entries) {
    present.push_back(entry.name);
    by_name[entry.name] = &entry;
  }
  NamedTensors tensors;
  for (const auto& name : names_to_read(path, only, if_there, present, left_out)) {
    const Entry& entry = *by_name.at(name);
    opened.read(path, entry, std::numeric_limits<Index>::max(), [&](std::vector<double> numbers) {
      tensors[name] = {entry.shape, std::move(numbers)};
    });
  }
  return tensors;
}

SafetensorsFile::SafetensorsFile(std::filesystem::path path) : path_(std::move(path)) {
  for (const Entry& entry : Opened(path_).entries) shapes_[entry.name] = entry.shape;
}

void SafetensorsFile::read(const std::string& name, std::span<float> out) const {
  constexpr Index at_once = 1 << 20;
  Opened opened(path_);
  const auto entry =
      std::find_if(opened.entries.begin(), opened.entries.end(), [&](const Entry& e) { return e.name == name; });
  if (entry == opened.entries.end() || number_count(entry->shape) != std::ssize(out))
    throw Misuse(fmt::format("{}: tensor '{}' is no longer there, or has another size; write the file again",
                             path_.string(), shown(name)));
  auto next = out.begin();
  opened.read(path_, *entry, at_once, [&](const std::vector<double>& numbers) {
    next = std::transform(numbers.begin(), numbers.end(), next, [](double x) { return static_cast<float>(x); });
  });
}

}  // namespace attnbench
