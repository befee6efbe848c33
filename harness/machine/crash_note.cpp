#include "harness/machine/crash_note.hpp"

#include <unistd.h>

#include <csignal>

namespace attnbench {

namespace {

thread_local const std::string* current = nullptr;

// Only functions that a signal handler may call.
void print_note(int signal) {
  if (current && write(STDERR_FILENO, current->data(), current->size()) < 0) _exit(128 + signal);
  std::signal(signal, SIG_DFL);
  raise(signal);
}

}  // namespace

CrashNote::CrashNote(std::string doing)
    : line_("attnbench: crashed while " + std::move(doing) + "\n"), before_(current) {
  current = &line_;
}

CrashNote::~CrashNote() { current = before_; }

void print_crash_notes() {
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) std::signal(signal, print_note);
}

}  // namespace attnbench
