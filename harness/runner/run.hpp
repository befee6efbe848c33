// Runs requests: whatever of their cells is not yet in the store.
#pragma once

#include "harness/runner/execute.hpp"
#include "harness/runner/plan.hpp"

namespace attnbench {

RunSummary run(const RunRequest& request, Store& store, std::int64_t run_id, const Limits& limits = {});

}  // namespace attnbench
