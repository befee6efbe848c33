#include "harness/machine/device_facts.hpp"

#include <mutex>
#include <utility>

namespace attnbench {

namespace {
std::mutex mutex;
std::optional<DeviceFacts> last;
}  // namespace

void tell_device(DeviceFacts facts) {
  const std::lock_guard lock(mutex);
  last = std::move(facts);
}

std::optional<DeviceFacts> take_device_facts() {
  const std::lock_guard lock(mutex);
  return std::exchange(last, std::nullopt);
}

}  // namespace attnbench
