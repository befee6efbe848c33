// The accelerators of this machine, by their names.
#pragma once

#include <string>

namespace attnbench {

// The model of a device that PyTorch calls "cuda" (the first) or "cuda:1", as NVIDIA's driver tells it, in the order of
// their places on the bus. The given text itself where the driver tells nothing.
std::string accelerator_name(const std::string& device);

}  // namespace attnbench
