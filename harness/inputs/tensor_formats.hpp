// What the readers of the tensor formats share: number formats, sizes checked for overflow, names in messages.
#pragma once

#include <bit>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/inputs/tensor_file.hpp"

namespace attnbench {

enum class FloatFormat { float16, bfloat16, float32, float64 };

size_t bytes_of(FloatFormat format);

// No tensor of attention has more axes; a bound keeps hostile headers from growing lists.
constexpr size_t most_axes = 16;

// Product of the axes (1 when there is none); nothing when a partial product exceeds Index, whatever follows.
std::optional<Index> number_count(std::span<const Index> shape);

// Calls read(chunk) for consecutive chunks of the encoded numbers and returns them decoded, exactly: subnormals,
// infinities and NaN included. Throws Misuse, naming `where`, when they cannot fit in memory.
std::vector<double> decoded(Index count, FloatFormat format, std::endian order, const std::string& where,
                            const std::function<void(std::span<unsigned char>)>& read);

// A name from a file as it may stand in a message: on one line, printable, cut at 64 characters.
std::string shown(std::string_view name);
std::string shown(std::span<const Index> shape);  // "[2, 3]"

// The names to read: `only` if all are present (Misuse otherwise, naming what is there), everything when it is empty.
std::vector<std::string> names_to_read(const std::filesystem::path& path, const std::vector<std::string>& only,
                                       const std::vector<std::string>& present);

// Size of a regular file; throws Misuse when there is none that can be read.
std::uintmax_t size_of_regular_file(const std::filesystem::path& path);

}  // namespace attnbench
