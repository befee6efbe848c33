#include "harness/runner/execute.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <stdexcept>

#include "harness/runner/experiment.hpp"
#include "harness/workers/interrupts.hpp"
#include "harness/workers/pool.hpp"
#include "harness/workers/scratch_folder.hpp"
#include "harness/workers/timing_group.hpp"

namespace attnbench {

namespace {

constexpr size_t most_listed = 36;  // lines that a summary keeps

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::string minutes_and_seconds(double seconds) {
  const auto whole = static_cast<long>(seconds + 0.5);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

void add_ending(RunSummary& summary, const Unit& unit, const Ending& ending) {
  ++summary.endings[to_string(ending.kind)];
  if (ending.kind == Ending::Kind::done) return;
  if (summary.not_done++ == 0)
    summary.first_reason = fmt::format("{} {}: {}", unit.row.method, to_string(ending.kind), ending.reason);
  for (NotDone& known : summary.endings_not_done)
    if (known.method == unit.row.method && known.n == unit.row.shape.nk && known.ending.kind == ending.kind) {
      ++known.replicates;
      return;
    }
  if (summary.endings_not_done.size() < most_listed)
    summary.endings_not_done.push_back({unit.row.method, unit.row.shape.nk, ending});
}

}  // namespace

Progress::Progress(size_t total) : total_(total), started_(now()), terminal_(isatty(STDERR_FILENO) != 0) {}

void Progress::step(const std::string& what) {
  ++done_;
  if (!terminal_ || (now() - printed_ < 0.2 && done_ < total_)) return;
  printed_ = now();
  const double left = (printed_ - started_) / static_cast<double>(done_) * static_cast<double>(total_ - done_);
  std::fputs(fmt::format("\r\x1b[K{}/{}  {} left  {:.60}", done_, total_, minutes_and_seconds(left), what).c_str(),
             stderr);
}

Progress::~Progress() {
  if (terminal_ && done_ > 0) std::fputs("\r\x1b[K", stderr);
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
    } catch (const std::logic_error& e) {  // measurements that break a rule are this cell's failure, not the run's
      outcome = {{Ending::Kind::failed, e.what()}};
      store.record(run_id, unit.row, unit.replicate, outcome.ending, seconds, {});
    }
    ++summary.ran;
    for (const auto& note : outcome.notes) ++summary.notes[note];
    add_ending(summary, unit, outcome.ending);
    progress.step(fmt::format("{} {} n={}", unit.row.experiment, unit.row.method, unit.row.shape.nk));
  };
  if (find<ExperimentEntry>(units.front().cell.experiment.name()).timing())
    run_in_groups(units, limits, record);
  else
    run_side_by_side(units, threads, limits, record);
  summary.interrupted = Interrupts::asked();
}

}  // namespace attnbench
