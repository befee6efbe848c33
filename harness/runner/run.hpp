// Runs requests: whatever of their cells is not yet in the store.
#pragma once

#include "harness/runner/backlog.hpp"
#include "harness/runner/execute.hpp"

namespace attnbench {

RunSummary run(const RunRequest& request, Store& store, std::int64_t run_id, const Limits& limits = {});
// The same where expand(request) is known already. before: called with what is missing, before any of it is done.
RunSummary run(const RunRequest& request, const std::vector<Cell>& cells, Store& store, std::int64_t run_id,
               const Limits& limits, const std::function<void(const Backlog&)>& before = {});

}  // namespace attnbench
