// Gives the number of calls that its process has seen, so that its numbers depend on what ran before.
#include <limits>

#include "tests/faults/fault.hpp"

namespace attnbench {
namespace {

std::atomic<int> calls{0};

template <class T>
void fill(Out<T> out) {
  out.setConstant(static_cast<T>(++calls));
}

// The same by as little as the precision holds.
template <class T>
void drift(Out<T> out) {
  out.setConstant(1 + static_cast<T>(++calls) * 4 * std::numeric_limits<T>::epsilon());
}

const bool counts = add(faulty("counts", fill<float>, fill<double>));
const bool drifts = add(faulty("drifts", drift<float>, drift<double>));

}  // namespace
}  // namespace attnbench
