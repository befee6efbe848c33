// Comes to no end.
#include "tests/faults/fault.hpp"

namespace attnbench {
namespace {

const bool registered = add(faulty("loop", [] {
  for (volatile int i = 0;; i = i + 1) {
  }
}));

}  // namespace
}  // namespace attnbench
