// Writing the safetensors format.
#pragma once

#include "harness/inputs/tensor_file.hpp"

namespace attnbench {

// Writes float64 or float32 safetensors to a temporary file beside the target, then renames it, so that no partial file
// is visible.
void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors, Precision precision);

}  // namespace attnbench
