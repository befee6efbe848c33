// Writes where there is no memory.
#include "tests/faults/fault.hpp"

namespace attnbench {
namespace {

const bool registered = add(faulty("segfault", [] {
  volatile int* volatile nowhere = reinterpret_cast<int*>(8);
  *nowhere = 1;
}));

}  // namespace
}  // namespace attnbench
