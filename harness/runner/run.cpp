#include "harness/runner/run.hpp"

#include <fmt/format.h>

#include "harness/experiment/cell_row.hpp"

namespace attnbench {

namespace {

std::vector<Unit> units_of(const Backlog& backlog, bool timing) {
  std::vector<Unit> units;
  for (const auto& entry : backlog.entries) {
    if (entry.missing.empty()) continue;
    const CellRow row = row_of(*entry.cell, timing);
    for (const Index replicate : entry.missing) units.push_back({*entry.cell, row, replicate});
  }
  return units;
}

// "performer:m=64 n=512 gaussian: 0.13 of it after 1000 replicates"
std::string text_of(const Backlog::Entry& entry) {
  const Cell& cell = *entry.cell;
  return fmt::format("{} n={} {}: within {:.2g} of it after {} replicates", cell.method.spec(), cell.problem.shape.nk,
                     cell.input.spec(), entry.stopping->relative, entry.stopping->replicates);
}

}  // namespace

RunSummary run(const RunRequest& request, Store& store, std::int64_t run_id, const Limits& limits) {
  return run(request, expand(request), store, run_id, limits);
}

RunSummary run(const RunRequest& request, const std::vector<Cell>& cells, Store& store, std::int64_t run_id,
               const Limits& limits, const std::function<void(const Backlog&)>& before) {
  const bool timing = request.timing();
  RunSummary summary;
  // Ended in this call, so a request with retry does not repeat them again.
  std::vector<std::pair<std::string, Index>> tried;
  for (bool first = true;; first = false) {
    EndedUnits ended = ended_units(request, store);
    for (const auto& [key, replicate] : tried) ended[key].try_emplace(replicate, Ending::Kind::failed);
    const Backlog backlog = backlog_of(request, cells, ended, &store);
    if (first) {
      summary.cells = backlog.entries.size();
      summary.already = backlog.already;
      summary.failed_before = backlog.failed;
      if (before) before(backlog);
    }
    std::vector<Unit> units = units_of(backlog, timing);
    if (units.empty()) {
      for (const auto& entry : backlog.entries)
        if (entry.stopping && entry.stopping->state == Stopping::State::ambiguous)
          summary.ambiguous.push_back(text_of(entry));
      return summary;
    }
    if (request.until)
      for (const Unit& unit : units) tried.emplace_back(unit.row.key, unit.replicate);
    execute(std::move(units), request.threads, limits, store, run_id, summary);
    if (summary.interrupted || !request.until) return summary;
  }
}

}  // namespace attnbench
