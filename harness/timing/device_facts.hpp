// Facts of the last call that only the library of a method knows, such as PyTorch on a GPU.
#pragma once

#include <optional>
#include <string>

namespace attnbench {

struct DeviceFacts {
  std::optional<double>
      peak_bytes;            // of the device's allocator, beyond what was there before; nullopt: on the processor
  std::string backend = {};  // the implementation that the library chose; empty: it does not tell
};

void tell_device(DeviceFacts facts);
// Those of the last call of this process, once; nullopt if none has told any since.
std::optional<DeviceFacts> take_device_facts();

}  // namespace attnbench
