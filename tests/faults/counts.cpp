// Gives the number of calls that its process has seen, so that its numbers depend on what ran before.
#include "tests/faults/fault.hpp"

namespace attnbench {
namespace {

std::atomic<int> calls{0};

template <class T>
void fill(Out<T> out) {
  out.setConstant(static_cast<T>(++calls));
}

const bool registered = add(faulty("counts", fill<float>, fill<double>));

}  // namespace
}  // namespace attnbench
