// Writes where there is no memory.
#include "tests/faults/fault.hpp"

namespace attnbench {
namespace {

const bool registered = add(faulty("segfault", [] { *reinterpret_cast<volatile int*>(8) = 1; }));

}  // namespace
}  // namespace attnbench
