// Throws a std::exception.
#include "tests/faults/fault.hpp"

namespace attnbench {
namespace {

const bool registered = add(faulty("throw", [] { throw std::runtime_error("no such number"); }));

}  // namespace
}  // namespace attnbench
