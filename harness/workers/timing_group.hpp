// Timing: groups of cells that share problem and input, one group after the other, alone on the machine.
#pragma once

#include "harness/workers/pool.hpp"

namespace attnbench {

// A group has one live worker for each of its cells and one for exact softmax, all on the same cores, as many as a
// cell's threads; they take turns in blocks of an order drawn from the seed. A worker that dies ends its own cell. Each
// cell has limits.seconds for all of its turns; where exact softmax has not enough of them there are no pairs, which is
// noted. Memory: limits.bytes for each, else what the others leave of all of it. Ends early when the run is
// interrupted.
void run_in_groups(const std::vector<Unit>& units, const Limits& limits, const RecordOutcome& record);

}  // namespace attnbench
