// Threads that stay between the calls that they work for.
#pragma once

#include <functional>

namespace attnbench {

// Runs body() in this thread and in `others` more, which round as this one does, and returns when all of them have
// ended. body must not throw. Calls may be nested and come from any thread, also after a fork.
//
// The other threads stay and wait for the next call. The system often begins a new thread on the core of the thread
// that makes it, and moves it only after a millisecond or two: on two cores a new thread began its work 2.0 ms later in
// the median, and one that had waited 0.05 ms later (docs/engines.md).
void work_together(int others, const std::function<void()>& body);

}  // namespace attnbench
