// The part of a request that a store lacks.
#pragma once

#include "harness/runner/estimate.hpp"
#include "harness/runner/plan.hpp"
#include "harness/store/ending.hpp"

namespace attnbench {

class Store;

// The cells of a request's shard, each with the replicates that are missing.
struct Backlog {
  struct Entry {
    const Cell* cell;
    std::string key;                        // in the store
    std::vector<Index> missing = {};        // with --until: only replicates up to the next stage
    std::optional<Stopping> stopping = {};  // with --until: what the stored replicates say
  };
  std::vector<Entry> entries;
  size_t already = 0;  // requested replicates that have ended
  size_t failed = 0;   // of these, the ones that a retry would run again
};

// The replicates that have ended, by the key of their cell.
using EndedUnits = std::unordered_map<std::string, std::map<Index, Ending::Kind>>;

// The replicates that have ended in the store, except those that a request with `retry` repeats.
EndedUnits ended_units(const RunRequest& request, const Store& store);

// cells: expand(request); the backlog points into them. store: has the numbers for --until; null if there is no store.
Backlog backlog_of(const RunRequest& request, const std::vector<Cell>& cells, const EndedUnits& ended,
                   const Store* store);

// Returns a sentence that counts the stored replicates that failed and names the option that runs them again; empty if
// none failed.
std::string remark_on_failed(size_t failed);

// Estimates what the backlog will take. With --until the number of replicates is unknown: the range goes from one more
// stage for each cell to the cap.
RunEstimate estimate(const RunRequest& request, const Backlog& backlog, const std::vector<PastCell>& past);

}  // namespace attnbench
