// Says what a thread was doing when a signal ends the process: code of a plugin may crash, and a silent end names
// nothing.
#pragma once

#include <string>

namespace attnbench {

// While it lives, a crash of this thread prints "attnbench: crashed while DOING". A note inside another one
// replaces it.
class CrashNote {
 public:
  explicit CrashNote(std::string doing);
  ~CrashNote();
  CrashNote(const CrashNote&) = delete;
  CrashNote& operator=(const CrashNote&) = delete;

 private:
  std::string line_;
  const std::string* before_;
};

// Prints notes from now on. The process then ends by the same signal.
void print_crash_notes();

}  // namespace attnbench
