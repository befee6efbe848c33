// How Python is called: with the interpreter taken, and with what it raises turned into an exception of ours.
#pragma once

#include <pybind11/pybind11.h>
#include <unistd.h>

#include <string>

namespace attnbench {

// Throws, for what Python raised: Misuse and Skip where Python raised those, bad_alloc for MemoryError, otherwise
// runtime_error with one line that says what was raised and where in that file.
[[noreturn]] void throw_as_ours(const pybind11::error_already_set& raised, const std::string& file);

// A worker's method may fork, and its child then comes back here: what follows is the parent's.
inline pid_t worker_process = 0;  // 0: this process is no worker, and its children are their own
inline void leave_if_forked() {
  if (worker_process != 0 && getpid() != worker_process) _exit(0);
}

// What action gives; it is called with the interpreter taken.
template <class Action>
auto in_python(const std::string& file, const Action& action) {
  const pybind11::gil_scoped_acquire taken;
  try {
    if constexpr (std::is_void_v<decltype(action())>) {
      action();
      leave_if_forked();
    } else {
      auto result = action();
      leave_if_forked();
      return result;
    }
  } catch (const pybind11::error_already_set& raised) {
    leave_if_forked();
    throw_as_ours(raised, file);
  }
}

}  // namespace attnbench
