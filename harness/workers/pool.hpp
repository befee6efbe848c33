// Runs units of statistics in parallel workers. No number depends on how many workers there are, or on which one ran a
// unit.
#pragma once

#include <functional>

#include "harness/experiment/unit.hpp"

namespace attnbench {

// Records the outcome of a unit and the seconds that it took.
using RecordOutcome = std::function<void(const Unit&, UnitOutcome, double seconds)>;

// Default limit on the resident bytes of all workers together: nine tenths of the memory of the machine or of the
// control group. It ignores how much is free at the moment, so the limit is the same for the first cell and the last.
double memory_of_workers();

// Runs units on `threads` workers or, if there are fewer units than threads, one after the other with all threads. A
// unit that needs more than half of a worker's share of the memory runs after the others, alone, with all memory and
// all threads. Returns early when the run is interrupted. While a KeptWorkers lives, workers stay for the next call.
// A worker loads the plugins of the unit that it runs, and never runs a unit of others.
void run_side_by_side(const std::vector<Unit>& units, int threads, const Limits& limits, const RecordOutcome& record);
// The same with a new worker for each unit, so that nothing ran before it in its process.
void run_in_fresh_workers(const std::vector<Unit>& units, int threads, const Limits& limits,
                          const RecordOutcome& record);

// For commands that call run_side_by_side many times: starting a worker takes as long as a hundred small units. At most
// one may exist; its workers end with it. The environment must not change while it lives, because workers keep the
// environment of their start.
class KeptWorkers {
 public:
  KeptWorkers();
  ~KeptWorkers();
  KeptWorkers(const KeptWorkers&) = delete;
  KeptWorkers& operator=(const KeptWorkers&) = delete;
};

}  // namespace attnbench
