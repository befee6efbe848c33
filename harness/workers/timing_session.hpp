// Runs sessions of timing one after the other, with nothing else running on the machine. Cells of a session differ only
// in method and length.
#pragma once

#include "harness/workers/pool.hpp"

namespace attnbench {

// Reports progress within the cells that are not recorded yet: the finished blocks amount to this many cells.
using TellProgress = std::function<void(double cells, const std::string& what)>;

// A session has one live worker for each of its cells and one for exact softmax at each of its lengths. All workers
// share the same cores, as many as a cell has threads. In every block each of them takes one turn, in an order drawn
// from the seed. Block b of one length and block b of another thus belong to the same pass, and a lasting slowdown of
// the machine affects all lengths.
// A worker that dies ends only its own cell. Each cell has limits.seconds for all of its turns. A length whose exact
// softmax has not enough turns has no pairs, and its cells get a note. Memory: each worker may use limits.bytes or,
// without that limit, what the other workers leave of the total. If the workers do not all fit at once, the units form
// several sessions of fewer lengths each, and their cells get a note.
// Cells are recorded when they end, or at the end of their session. An interrupt ends this early and loses a session
// that has not ended as a whole.
void run_in_sessions(const std::vector<Unit>& units, const Limits& limits, const RecordOutcome& record,
                     const TellProgress& progress);

}  // namespace attnbench
