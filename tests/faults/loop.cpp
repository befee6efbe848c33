// Comes to no end.
#include "tests/faults/fault.hpp"

namespace attnbench {
namespace {

const bool registered = add(faulty("loop", [] {
  volatile int steps = 0;
  for (;;) steps = steps + 1;
}));

}  // namespace
}  // namespace attnbench
