// What of a request a store lacks.
#pragma once

#include "harness/runner/estimate.hpp"
#include "harness/runner/plan.hpp"
#include "harness/store/store.hpp"

namespace attnbench {

// The cells of a request's shard, each with the replicates that are missing.
struct Backlog {
  struct Entry {
    const Cell* cell;
    std::string key;                        // in the store
    std::vector<Index> missing = {};        // with --until: of those up to the next stage
    std::optional<Stopping> stopping = {};  // with --until: what the stored replicates say
  };
  std::vector<Entry> entries;
  size_t already = 0;  // replicates that were asked for and have ended
};

// What has ended, by the cells' keys.
using EndedUnits = std::unordered_map<std::string, std::map<Index, Ending::Kind>>;

// What the store has, less what a request with retry does again.
EndedUnits ended_units(const RunRequest& request, const Store& store);

// cells: expand(request); the backlog points into them. store: where the numbers of --until are; null: there is none.
Backlog backlog_of(const RunRequest& request, const std::vector<Cell>& cells, const EndedUnits& ended,
                   const Store* store);

// What it will take. With --until the number of replicates is not known: from one stage more for each cell to the cap.
RunEstimate estimate(const RunRequest& request, const Backlog& backlog, const std::vector<PastCell>& past);

}  // namespace attnbench
