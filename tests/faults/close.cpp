// Closes all files, the connection to the runner as well, and goes on.
#include <unistd.h>

#include "tests/faults/fault.hpp"

namespace attnbench {
namespace {

const bool registered = add(faulty("close", [] {
  closefrom(0);
  sleep(1000);
}));

}  // namespace
}  // namespace attnbench
