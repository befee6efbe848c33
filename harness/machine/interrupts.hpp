// Handles Ctrl-C and SIGTERM during a run.
#pragma once

#include <signal.h>

namespace attnbench {

// While an instance lives, the first SIGINT or SIGTERM is only recorded, so that a run can end between two replicates.
// The second ends the program at once, and its workers die with it.
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
