// Functions that the readers of tensor formats share: number formats, sizes checked for overflow, names in messages.
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

// No attention tensor has more axes. The bound prevents hostile headers from growing lists.
constexpr size_t most_axes = 16;

// Product of the axes (1 without axes); nullopt if any partial product exceeds Index.
std::optional<Index> number_count(std::span<const Index> shape);

// Calls read(chunk) for consecutive chunks of the encoded numbers and returns them decoded exactly, including
// subnormals, infinities and NaN. Throws Misuse, which names `where`, if they do not fit in memory.
std::vector<double> decoded(Index count, FloatFormat format, std::endian order, const std::string& where,
                            const std::function<void(std::span<unsigned char>)>& read);

// A name from a file made safe for messages: one line, printable, cut at 64 characters.
std::string shown(std::string_view name);
std::string shown(std::span<const Index> shape);  // "[2, 3]"

// The names to read: `only` if all are present (otherwise Misuse, which lists the present ones), and those of
// `if_there` that are present; all names if `only` is empty. left_out, unless it is null, gets the others.
std::vector<std::string> names_to_read(const std::filesystem::path& path, const std::vector<std::string>& only,
                                       const std::vector<std::string>& if_there,
                                       const std::vector<std::string>& present, std::vector<std::string>* left_out);

// Size of a regular file. Throws Misuse if it does not exist or cannot be read.
std::uintmax_t size_of_regular_file(const std::filesystem::path& path);

// Throws the Misuse that tells how tensors of torch.save come into a file that can be read.
[[noreturn]] void refuse_file_of_pytorch(const std::string& file);

}  // namespace attnbench
