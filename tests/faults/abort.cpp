// Calls abort, as a failed assertion does.
#include <cstdio>
#include <cstdlib>

#include "tests/faults/fault.hpp"

namespace attnbench {
namespace {

const bool registered = add(faulty("abort", [] {
  std::fputs("a failed assertion\n", stderr);
  std::abort();
}));

}  // namespace
}  // namespace attnbench
