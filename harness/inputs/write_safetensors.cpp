// Writes safetensors in the form that safetensors.cpp reads: header length, JSON header, data. Writes a temporary file,
// then renames it.
#include "harness/inputs/write_safetensors.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/errors/error.hpp"
#include "harness/inputs/tensor_formats.hpp"

namespace attnbench {

namespace {

using Json = nlohmann::json;

std::string written_header(const NamedTensors& tensors, std::uint64_t number_bytes, const std::string& file) {
  Json header = Json::object();
  std::uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    const std::uint64_t end = offset + tensor.values.size() * number_bytes;
    header[name] = {
        {"dtype", number_bytes == 4 ? "F32" : "F64"}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  try {
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');  // aligned data can be mapped
    return text;
  } catch (const Json::exception&) {
    throw Misuse(fmt::format("{}: a tensor's name is not UTF-8; rename it", file));
  }
}

template <class T>
void write_numbers(std::ostream& stream, std::span<const double> values) {
  constexpr size_t chunk = size_t{1} << 16;
  std::vector<char> bytes;
  for (size_t first = 0; first < values.size(); first += chunk) {
    bytes.clear();
    for (const double value : values.subspan(first, std::min(chunk, values.size() - first))) {
      using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
      const auto bits = std::bit_cast<Bits>(static_cast<T>(value));
      for (size_t b = 0; b < sizeof(T); ++b) bytes.push_back(static_cast<char>(bits >> (8 * b) & 0xff));
    }
    stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
}

// A temporary file that no other process or thread writes. The destructor removes it unless it was renamed.
class Temporary {
 public:
  explicit Temporary(const std::filesystem::path& beside) {
    static std::atomic<unsigned> count{0};
    path_ = beside;
    path_ += fmt::format(".{}-{}.tmp", getpid(), count++);
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    std::error_code ignored;  // already renamed, or never created
    std::filesystem::remove(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace

void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors, Precision precision) {
  for (const auto& [name, tensor] : tensors)
    if (name == "__metadata__" || number_count(tensor.shape) != static_cast<Index>(tensor.values.size()))
      throw std::logic_error(
          fmt::format("tensor '{}' of shape {} has {} values", name, shown(tensor.shape), tensor.values.size()));
  const std::string header = written_header(tensors, precision == Precision::f32 ? 4 : 8, path.string());
  const Temporary temporary(path);
  std::ofstream stream(temporary.path(), std::ios::binary | std::ios::trunc);
  for (size_t b = 0; b < 8; ++b) stream.put(static_cast<char>(header.size() >> (8 * b) & 0xff));
  stream << header;
  for (const auto& [name, tensor] : tensors) {
    if (precision == Precision::f32)
      write_numbers<float>(stream, tensor.values);
    else
      write_numbers<double>(stream, tensor.values);
  }
  stream.close();
  std::error_code error;
  if (stream) std::filesystem::rename(temporary.path(), path, error);
  if (!stream || error)
    throw Misuse(fmt::format("{}: cannot be written{}; check that the folder exists, may be written and has room",
                             path.string(), error ? ": " + error.message() : ""));
}

}  // namespace attnbench
