#include "harness/machine/interrupts.hpp"

#include <unistd.h>

namespace attnbench {

namespace {

volatile sig_atomic_t signals = 0;

void remember(int signal) {
  signals = signals + 1;
  if (signals > 1) _exit(128 + signal);
}

}  // namespace

Interrupts::Interrupts() {
  signals = 0;
  struct sigaction action {};
  action.sa_handler = remember;
  sigaction(SIGINT, &action, &interrupt_);
  sigaction(SIGTERM, &action, &terminate_);
}

Interrupts::~Interrupts() {
  sigaction(SIGINT, &interrupt_, nullptr);
  sigaction(SIGTERM, &terminate_, nullptr);
}

bool Interrupts::asked() { return signals > 0; }

}  // namespace attnbench
