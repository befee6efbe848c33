// What it takes to hand a call over to a method in another language, beside the method itself: it is not the method's
// time, and is taken out of it.
#pragma once

namespace attnbench {

struct Handover {
  double conversion = 0;   // seconds: views made, results copied
  double interpreter = 0;  // seconds that calls which do nothing take; they are left in the method's time
};

// Adds one call's, from any thread.
void add_handover(double conversion, double interpreter);
// Of this process so far.
Handover handover();

}  // namespace attnbench
