// Statistics: units side by side in workers. No number depends on how many there are, or on which one did a unit.
#pragma once

#include <functional>

#include "harness/experiment/unit.hpp"

namespace attnbench {

// What is done with the outcome of a unit, and how many seconds it took.
using RecordOutcome = std::function<void(const Unit&, UnitOutcome, double seconds)>;

// Bytes that all workers together may have resident, by default: nine tenths of the memory of the machine or of the
// control group, whatever of it is free just now, so that a limit is the same for the first cell and the last.
double memory_of_workers();

// Units on `threads` workers, or, when there are fewer than that, one after the other with all threads. A unit that
// takes more than half of a worker's share of the memory has all of it, and all threads, after the others. Ends early
// when the run is interrupted.
// While a KeptWorkers lives, workers stay for the next call.
void run_side_by_side(const std::vector<Unit>& units, int threads, const Limits& limits, const RecordOutcome& record);

// For commands that call run_side_by_side many times: starting a worker takes as long as a hundred small units. One at
// a time; workers end with it. The environment must not change meanwhile, since workers have that of their start.
class KeptWorkers {
 public:
  KeptWorkers();
  ~KeptWorkers();
  KeptWorkers(const KeptWorkers&) = delete;
  KeptWorkers& operator=(const KeptWorkers&) = delete;
};

}  // namespace attnbench
