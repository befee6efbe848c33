// Heads stored in files, for the inputs `file` and `model`.
#pragma once

#include <memory>

#include "harness/inputs/input.hpp"
#include "harness/inputs/tensor_file.hpp"

namespace attnbench {

// Changes when the file is rewritten, even within the resolution of its clock if it was replaced by renaming.
std::string version_of(const std::filesystem::path& path);

// The file's tensors, with what it has of a method's needs. The last files read are cached by path, inode, size and
// time of change: a head is drawn for every cell, from several threads.
std::shared_ptr<const AttentionFile> captured_heads(const std::filesystem::path& path,
                                                    const std::vector<Need>& needs = {});

// Hash of the file's bytes, 16 hexadecimal digits. Cached likewise.
std::string content_hash(const std::filesystem::path& path);

// Q, K and V of one head, the first request.nq and request.nk tokens. Throws Misuse if the file has fewer, or other
// widths.
HeadData<double> first_tokens(const AttentionFile& file, Index batch, Index head, const InputRequest& request);

// Limits of the file: at most its number of rows, exactly its widths, and its heads.
InputLimits limits_of(const AttentionFile& file);

struct CapturedSizes {
  Index batches = 0;
  InputLimits limits;
};
// Cached for more files than heads are, because planning asks for the sizes of every cell and needs no head.
CapturedSizes captured_sizes(const std::filesystem::path& path);

}  // namespace attnbench
