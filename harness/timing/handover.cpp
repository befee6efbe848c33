#include "harness/timing/handover.hpp"

#include <mutex>
#include <set>
#include <thread>
#include <utility>

namespace attnbench {

namespace {
std::mutex mutex;
Handover all;
std::set<std::thread::id> callers;
}  // namespace

void add_handover(double conversion, double interpreter) {
  const std::lock_guard lock(mutex);
  all.conversion += conversion;
  all.interpreter += interpreter;
  callers.insert(std::this_thread::get_id());
  all.callers = static_cast<int>(callers.size());
}

Handover take_handover() {
  const std::lock_guard lock(mutex);
  callers.clear();
  return std::exchange(all, {});
}

}  // namespace attnbench
