#include "harness/machine/counted_calls.hpp"

namespace attnbench {

namespace {

thread_local bool counting = false;
thread_local std::optional<CountedCall> told;

}  // namespace

std::optional<CountedCall> counted(const std::function<void()>& call) {
  told.reset();
  counting = true;
  try {
    call();
  } catch (...) {
    counting = false;
    throw;
  }
  counting = false;
  return told;
}

bool counting_calls() { return counting; }
void tell_counted(const CountedCall& call) { told = call; }

}  // namespace attnbench
