// Runs the cells of a request that are not yet in the store.
#pragma once

#include "harness/runner/backlog.hpp"
#include "harness/runner/execute.hpp"

namespace attnbench {

RunSummary run(const RunRequest& request, Store& store, std::int64_t run_id, const Limits& limits = {});
// The same for cells = expand(request). before: called with the backlog before any of it runs.
RunSummary run(const RunRequest& request, const std::vector<Cell>& cells, Store& store, std::int64_t run_id,
               const Limits& limits, const std::function<void(const Backlog&)>& before = {});

}  // namespace attnbench
