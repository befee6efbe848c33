#include "harness/inputs/tensor_formats.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "harness/errors/error.hpp"
#include "harness/machine/memory_limit.hpp"

namespace attnbench {

namespace {

// An IEEE number of 16 bits (1 + E + M, E + M = 15) as a double.
template <int M>
double from_sixteen_bits(std::uint64_t bits) {
  constexpr int bias = (1 << (14 - M)) - 1;
  constexpr std::uint64_t exponents = (1u << (15 - M)) - 1;
  const std::uint64_t sign = (bits >> 15) << 63, exponent = (bits >> M) & exponents, fraction = bits & ((1u << M) - 1);
  if (exponent == 0) {  // zero or subnormal: fraction 2^(1 - bias - M)
    const double magnitude = std::ldexp(static_cast<double>(fraction), 1 - bias - M);
    return sign ? -magnitude : magnitude;
  }
  const std::uint64_t widened = exponent == exponents ? 0x7ff : exponent + 1023 - bias;
  return std::bit_cast<double>(sign | (widened << 52) | (fraction << (52 - M)));
}

template <size_t Bytes>
std::uint64_t assembled(const unsigned char* bytes, std::endian order) {
  std::uint64_t bits = 0;
  for (size_t b = 0; b < Bytes; ++b) bits = (bits << 8) | bytes[order == std::endian::big ? b : Bytes - 1 - b];
  return bits;
}

double decoded_number(const unsigned char* bytes, FloatFormat format, std::endian order) {
  switch (format) {
    case FloatFormat::float16:
      return from_sixteen_bits<10>(assembled<2>(bytes, order));
    case FloatFormat::bfloat16:
      return from_sixteen_bits<7>(assembled<2>(bytes, order));
    case FloatFormat::float32:
      return std::bit_cast<float>(static_cast<std::uint32_t>(assembled<4>(bytes, order)));
    case FloatFormat::float64:
      return std::bit_cast<double>(assembled<8>(bytes, order));
  }
  return 0;
}

}  // namespace

size_t bytes_of(FloatFormat format) {
  switch (format) {
    case FloatFormat::float16:
    case FloatFormat::bfloat16:
      return 2;
    case FloatFormat::float32:
      return 4;
    case FloatFormat::float64:
      return 8;
  }
  return 0;
}

std::optional<Index> number_count(std::span<const Index> shape) {
  Index count = 1;
  for (const Index axis : shape)
    if (axis < 0 || __builtin_mul_overflow(count, axis, &count)) return std::nullopt;
  return count;
}

std::vector<double> decoded(Index count, FloatFormat format, std::endian order, const std::string& where,
                            const std::function<void(std::span<unsigned char>)>& read) {
  refuse_beyond_memory(static_cast<double>(count) * sizeof(double), where, "read a smaller tensor");
  std::vector<double> values(static_cast<size_t>(count));
  constexpr size_t chunk = size_t{1} << 16;  // numbers
  const size_t width = bytes_of(format);
  std::vector<unsigned char> bytes(std::min(chunk, values.size()) * width);
  for (size_t first = 0; first < values.size(); first += chunk) {
    const size_t here = std::min(chunk, values.size() - first);
    read(std::span(bytes).first(here * width));
    for (size_t i = 0; i < here; ++i) values[first + i] = decoded_number(&bytes[i * width], format, order);
  }
  return values;
}

std::string shown(std::string_view name) {
  constexpr size_t longest = 64;
  std::string text(name.substr(0, longest));
  for (char& c : text)
    if (c < ' ' || c > '~') c = '?';
  return name.size() > longest ? text + "..." : text;
}

std::string shown(std::span<const Index> shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

std::vector<std::string> names_to_read(const std::filesystem::path& path, const std::vector<std::string>& only,
                                       const std::vector<std::string>& if_there,
                                       const std::vector<std::string>& present, std::vector<std::string>* left_out) {
  for (const auto& name : only) {
    if (std::find(present.begin(), present.end(), name) != present.end()) continue;
    constexpr size_t most_listed = 32;  // keep the message short
    std::vector<std::string> listed;
    for (const auto& there : present)
      if (listed.size() < most_listed) listed.push_back(shown(there));
    throw Misuse(fmt::format("{}: no tensor '{}' among its {}{}", path.string(), shown(name), present.size(),
                             nearest_names(name, listed)));
  }
  if (only.empty()) return present;
  std::vector<std::string> names = only;
  const auto among = [](const auto& all, const std::string& name) {
    return std::find(all.begin(), all.end(), name) != all.end();
  };
  for (const auto& name : if_there)
    if (among(present, name) && !among(names, name)) names.push_back(name);
  if (left_out)
    for (const auto& name : present)
      if (!among(names, name)) left_out->push_back(name);
  return names;
}

std::uintmax_t size_of_regular_file(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status))
    throw Misuse(fmt::format("{}: there is no such file; expected a .safetensors or .npz file", path.string()));
  if (!std::filesystem::is_regular_file(status))
    throw Misuse(fmt::format("{}: no regular file; expected a .safetensors or .npz file", path.string()));
  const auto size = std::filesystem::file_size(path, error);
  if (error) throw Misuse(fmt::format("{}: cannot be read: {}; check it", path.string(), error.message()));
  return size;
}

void refuse_file_of_pytorch(const std::string& file) {
  throw Misuse(
      fmt::format("{}: a file of torch.save; write q, k and v with np.savez('heads.npz', q=q.numpy(), "
                  "k=k.numpy(), v=v.numpy()), or take them from a model with scripts/capture_qkv.py",
                  file));
}

}  // namespace attnbench
