// Asks for more memory than there is, at once.
#include "tests/faults/fault.hpp"

namespace attnbench {
namespace {

const bool registered = add(faulty("allocate-at-once", [] {
  std::vector<double> all(size_t{1} << 45);
  all.back() = 1;
}));

}  // namespace
}  // namespace attnbench
