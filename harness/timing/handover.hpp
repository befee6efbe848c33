// The time that a call takes to reach a method in another language and return. It is not the method's own time, and is
// subtracted from it.
#pragma once

namespace attnbench {

struct Handover {
  double conversion = 0;   // seconds: making views, copying results
  double interpreter = 0;  // seconds of calls that do nothing; they stay in the method's time
  int callers = 0;         // threads that made calls
};

// Adds the times of one call, from any thread.
void add_handover(double conversion, double interpreter);
// The sums over this process since the last time that they were taken.
Handover take_handover();

}  // namespace attnbench
