// Facts of the last call that only the library of a method knows, such as PyTorch on a GPU.
#pragma once

#include <optional>
#include <string>

#include "harness/machine/rates.hpp"

namespace attnbench {

struct DeviceFacts {
  std::optional<double> peak_bytes;  // of the device's allocator, beyond what was there before; none: on the processor
  std::string backend = {};          // the implementation that the library chose; empty: it does not tell
  std::optional<Rates> rates = {};   // of the device in the type that the method computes in; none: on the processor
};

void tell_device(DeviceFacts facts);
// Those of the last call of this process, once; nullopt if none has told any since.
std::optional<DeviceFacts> take_device_facts();

}  // namespace attnbench
