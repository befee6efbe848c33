// --device, --dtype and --compile: they set the parameters of these names in the spec of every method that computes by
// PyTorch.
#pragma once

#include <string>
#include <vector>

#include "harness/cli/command.hpp"

namespace attnbench {

struct TorchOptions {
  std::string device, dtype;
  bool compile = false;
};

void add_torch_options(options::options_description& known, TorchOptions& given);

// The specs, with what was given in each that computes by PyTorch. Throws Misuse if an option is given and no spec
// does, or one says that parameter itself.
std::vector<std::string> with_torch_options(const std::vector<std::string>& specs, const TorchOptions& given);

}  // namespace attnbench
