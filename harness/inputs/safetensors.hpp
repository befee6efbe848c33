// The safetensors format.
#pragma once

#include <span>

#include "harness/inputs/tensor_file.hpp"

namespace attnbench {

// Like read_tensors, for a .safetensors file.
NamedTensors read_safetensors(const std::filesystem::path& path, const std::vector<std::string>& only,
                              const std::vector<std::string>& if_there, std::vector<std::string>* left_out = nullptr);

// A .safetensors file whose tensors are read one at a time, in float: the weights of a model do not fit in memory
// twice.
class SafetensorsFile {
 public:
  // Reads and checks the header. Throws Misuse.
  explicit SafetensorsFile(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  const std::map<std::string, std::vector<Index>>& shapes() const { return shapes_; }
  // The numbers of a tensor of F16, BF16, F32 or F64, row-major. `out` has as many. Throws Misuse for another type.
  void read(const std::string& name, std::span<float> out) const;

 private:
  std::filesystem::path path_;
  std::map<std::string, std::vector<Index>> shapes_;
};

}  // namespace attnbench
