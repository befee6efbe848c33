#include "harness/runner/run.hpp"

namespace attnbench {

RunSummary run(const RunRequest& request, Store& store, std::int64_t run_id, const Limits& limits) {
  const auto cells = expand(request);
  RunSummary summary;
  summary.cells = cells.size();
  const bool timing = find<ExperimentEntry>(Params("experiments", request.experiment).name()).timing();
  std::vector<Unit> missing;
  for (const Cell& cell : cells) {
    const CellRow row = cell.row(timing);
    const auto ended = store.ended_replicates(row.key);
    for (Index replicate = 0; replicate < request.replicates; ++replicate) {
      if (ended.contains(replicate))
        ++summary.already;
      else
        missing.push_back({cell, row, replicate});
    }
  }
  execute(std::move(missing), request.threads, limits, store, run_id, summary);
  return summary;
}

}  // namespace attnbench
