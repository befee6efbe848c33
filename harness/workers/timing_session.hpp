// Timing: sessions of cells that differ in method and length alone, one session after the other, alone on the machine.
#pragma once

#include "harness/workers/pool.hpp"

namespace attnbench {

// How far it is within the cells that are not recorded yet: that many of them would be done by now.
using TellProgress = std::function<void(double cells, const std::string& what)>;

// A session has one live worker for each of its cells and one for exact softmax at each of its lengths, all on the same
// cores, as many as a cell's threads. In every block all of them take a turn, in an order drawn from the seed: block b
// of one length and block b of another are from the same pass, and what slows the machine for longer slows all lengths.
// A worker that dies ends its own cell. Each cell has limits.seconds for all of its turns; where exact softmax has not
// enough of them there are no pairs at that length, which is noted. Memory: limits.bytes for each, else what the others
// leave of all of it. Where not all workers fit at once there are several sessions, of fewer lengths each, which is
// noted. Cells are recorded when they end, or at the end of their session. Ends early when the run is interrupted, and
// then a session that has not ended is lost as a whole.
void run_in_sessions(const std::vector<Unit>& units, const Limits& limits, const RecordOutcome& record,
                     const TellProgress& progress);

}  // namespace attnbench
