// Leaves a process behind that never ends, or that comes back as a second worker.
#include <unistd.h>

#include "tests/faults/fault.hpp"

namespace attnbench {
namespace {

const bool looping = add(faulty("fork", [] {
  if (fork() == 0)
    for (;;) pause();
}));
const bool returning = add(faulty("fork-and-return", [] { fork(); }));

}  // namespace
}  // namespace attnbench
