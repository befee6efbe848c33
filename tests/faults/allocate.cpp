// Takes memory without end, a megabyte at a time.
#include "tests/faults/fault.hpp"

namespace attnbench {
namespace {

const bool registered = add(faulty("allocate", [] {
  static std::vector<std::vector<char>> kept;
  for (;;) kept.emplace_back(1 << 20, char(1));
}));

}  // namespace
}  // namespace attnbench
