#include "harness/timing/handover.hpp"

#include <mutex>

namespace attnbench {

namespace {
std::mutex mutex;
Handover all;
}  // namespace

void add_handover(double conversion, double interpreter) {
  const std::lock_guard lock(mutex);
  all.conversion += conversion;
  all.interpreter += interpreter;
}

Handover handover() {
  const std::lock_guard lock(mutex);
  return all;
}

}  // namespace attnbench
