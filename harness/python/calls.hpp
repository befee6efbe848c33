// Calls Python with the interpreter's lock held, and turns Python's exceptions into ours.
#pragma once

#include <pybind11/pybind11.h>
#include <unistd.h>

#include <string>

namespace attnbench {

// Throws the counterpart of a Python exception: Misuse and Skip if Python raised these, bad_alloc for MemoryError,
// otherwise runtime_error with one line that says what was raised and where in that file.
[[noreturn]] void throw_as_ours(const pybind11::error_already_set& raised, const std::string& file);

// A worker's method may fork, and its child then returns here. Only the parent may continue.
inline pid_t worker_process = 0;  // 0: this process is not a worker, and may fork children of its own
inline void leave_if_forked() {
  if (worker_process != 0 && getpid() != worker_process) _exit(0);
}

// Calls action with the interpreter's lock held, and returns its result.
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
