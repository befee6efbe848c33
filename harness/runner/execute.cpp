#include "harness/runner/execute.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "harness/errors/printable.hpp"
#include "harness/machine/interrupts.hpp"
#include "harness/machine/scratch_folder.hpp"
#include "harness/runner/progress.hpp"
#include "harness/store/store.hpp"
#include "harness/workers/pool.hpp"
#include "harness/workers/timing_session.hpp"

namespace attnbench {

namespace {

constexpr size_t most_endings = 40;  // lines that a summary keeps

void add_ending(RunSummary& summary, const Unit& unit, const Ending& ending) {
  const bool failed = !settled(ending.kind);
  if (summary.not_done == 0 || (failed && summary.failed == 0))
    summary.first_reason = fmt::format("{} {}: {}", unit.row.method, to_string(ending.kind), ending.reason);
  ++summary.not_done;
  summary.failed += failed;
  for (auto& line : summary.endings)
    if (line.method == unit.row.method && line.n == unit.row.shape.nk && line.ending.kind == ending.kind) {
      ++line.replicates;
      return;
    }
  if (summary.endings.size() < most_endings) summary.endings.push_back({unit.row.method, unit.row.shape.nk, ending, 1});
}

}  // namespace

RunSummary& RunSummary::operator+=(const RunSummary& other) {
  cells += other.cells;
  ran += other.ran;
  already += other.already;
  failed_before += other.failed_before;
  if (not_done == 0 || (failed == 0 && other.failed > 0)) first_reason = other.first_reason;
  not_done += other.not_done;
  failed += other.failed;
  interrupted = interrupted || other.interrupted;
  return *this;
}

std::string table_of_endings(const RunSummary& summary) {
  if (summary.endings.empty()) return "";
  size_t method = 6, ending = 6;
  for (const auto& line : summary.endings) {
    method = std::max(method, line.method.size());
    ending = std::max(ending, to_string(line.ending.kind).size());
  }
  std::string table = fmt::format("{:<{}}  {:>7}  {:<{}}  {}\n", "method", method, "n", "ending", ending, "reason");
  size_t replicates = 0;
  for (const auto& line : summary.endings) {
    replicates += line.replicates;
    table +=
        fmt::format("{:<{}}  {:>7}  {:<{}}  {}{}\n", line.method, method, line.n, to_string(line.ending.kind), ending,
                    line.ending.reason, line.replicates > 1 ? fmt::format(" (the first of {})", line.replicates) : "");
  }
  if (summary.not_done > replicates) table += fmt::format("and {} more\n", summary.not_done - replicates);
  return table;
}

void execute(std::vector<Unit> units, int threads, const Limits& limits, Store& store, std::int64_t run_id,
             RunSummary& summary) {
  if (units.empty()) return;
  remove_abandoned_folders();
  const Interrupts interrupts;
  Progress progress(units.size());
  const auto record = [&](const Unit& unit, UnitOutcome outcome, double seconds) {
    try {
      store.record(run_id, unit.row, unit.replicate, outcome.ending, seconds, outcome.measurements);
    } catch (const std::logic_error& e) {  // measurements that break a rule fail this cell, not the run
      outcome = {{Ending::Kind::failed, e.what()}};
      store.record(run_id, unit.row, unit.replicate, outcome.ending, seconds, {});
    }
    ++summary.ran;
    for (const auto& note : outcome.notes) ++summary.notes[note];
    if (outcome.ending.kind != Ending::Kind::done) add_ending(summary, unit, outcome.ending);
    progress.step(fmt::format("{} {} n={}", unit.row.experiment, unit.row.method, unit.row.shape.nk));
  };
  if (units.front().cell.timing())
    run_in_sessions(units, limits, record,
                    [&](double cells, const std::string& what) { progress.within(cells, what); });
  else
    run_side_by_side(units, threads, limits, record);
  summary.interrupted = Interrupts::asked();
}

}  // namespace attnbench
