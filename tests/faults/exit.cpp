// Ends the process as if all were well.
#include <cstdlib>

#include "tests/faults/fault.hpp"

namespace attnbench {
namespace {

const bool registered = add(faulty("exit", [] { std::exit(0); }));

}  // namespace
}  // namespace attnbench
