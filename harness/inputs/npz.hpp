// NumPy's .npz.
#pragma once

#include "harness/inputs/tensor_file.hpp"

namespace attnbench {

// Like read_tensors, for a .npz file.
NamedTensors read_npz(const std::filesystem::path& path, const std::vector<std::string>& only,
                      const std::vector<std::string>& if_there, std::vector<std::string>* left_out = nullptr);

}  // namespace attnbench
