// The safetensors format.
#pragma once

#include "harness/inputs/tensor_file.hpp"

namespace attnbench {

// Like read_tensors, for a .safetensors file.
NamedTensors read_safetensors(const std::filesystem::path& path, const std::vector<std::string>& only,
                              const std::vector<std::string>& if_there);

}  // namespace attnbench
