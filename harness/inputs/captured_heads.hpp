// Heads that lie in files, as the inputs `file` and `model` give them.
#pragma once

#include <memory>

#include "harness/inputs/input.hpp"
#include "harness/inputs/tensor_file.hpp"

namespace attnbench {

// Differs when the file was written again, even within the resolution of its clock if it was replaced by renaming.
std::string version_of(const std::filesystem::path& path);

// The file's tensors. The files read last are kept, by path, place on the disk, size and time of change: a head is
// drawn for every cell, from several threads.
std::shared_ptr<const AttentionFile> captured_heads(const std::filesystem::path& path);

// Hash of the file's bytes, 16 hexadecimal digits. Kept likewise.
std::string content_hash(const std::filesystem::path& path);

// Q, K and V of one head, the first request.nq and request.nk tokens of it. Throws Misuse when the file has fewer, or
// other widths.
HeadData<double> first_tokens(const AttentionFile& file, Index batch, Index head, const InputRequest& request);

// All that the file has: rows at most, widths fixed.
InputLimits limits_of(const AttentionFile& file);

}  // namespace attnbench
