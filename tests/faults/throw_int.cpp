// Throws an int, which does not derive from std::exception.
#include "tests/faults/fault.hpp"

namespace attnbench {
namespace {

const bool registered = add(faulty("throw-int", [] { throw 7; }));

}  // namespace
}  // namespace attnbench
