// Ctrl-C and SIGTERM while a run goes on.
#pragma once

#include <signal.h>

namespace attnbench {

// While one lives, the first SIGINT or SIGTERM is only remembered, so that a run can end between two replicates; the
// second ends the program at once. Its workers die with it.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  static bool asked();

 private:
  struct sigaction interrupt_, terminate_;
};

}  // namespace attnbench
