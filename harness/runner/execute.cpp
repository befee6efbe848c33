#include "harness/runner/execute.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <mutex>
#include <new>

namespace attnbench {

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::string minutes_and_seconds(double seconds) {
  const auto whole = static_cast<long>(seconds + 0.5);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

// What an exception says about a cell. Misuse inside a cell is a failure of that cell: the request itself was checked.
Ending ending_of_current_exception() {
  try {
    throw;
  } catch (const Skip& e) {
    return {Ending::Kind::skipped, e.what()};
  } catch (const NumericallyInvalid& e) {
    return {Ending::Kind::invalid, e.what()};
  } catch (const std::bad_alloc&) {
    return {Ending::Kind::out_of_memory, "an allocation was refused"};
  } catch (const std::exception& e) {
    return {Ending::Kind::failed, e.what()};
  } catch (...) {
    return {Ending::Kind::failed, "threw something that is no std::exception"};
  }
}

// A number that is none is an ending, never a row.
Ending ending_of(const std::vector<Measurement>& measurements) {
  for (const auto& m : measurements)
    for (const double value : m.values)
      if (std::isnan(value)) return {Ending::Kind::invalid, m.metric + " is not a number"};
  return {};
}

class Execution {
 public:
  Execution(const std::vector<Unit>& units, int threads, Store& store, std::int64_t run_id, RunSummary& summary)
      : units_(units),
        experiment_(find<ExperimentEntry>(units.front().cell.experiment.name())),
        threads_(threads),
        store_(store),
        run_id_(run_id),
        summary_(summary),
        progress_(units.size()) {}

  void go() {
    if (experiment_.timing())
      run_groups();
    else
      run_side_by_side();
  }

 private:
  void record(const Unit& task, Ending ending, Recorder recorder, double seconds) {
    std::vector<Measurement> measurements = recorder.take();
    if (ending.kind == Ending::Kind::done) ending = ending_of(measurements);
    if (ending.kind != Ending::Kind::done) measurements.clear();
    const std::scoped_lock lock(mutex_);
    store_.record(run_id_, task.row, task.replicate, ending, seconds, measurements);
    ++summary_.ran;
    for (const auto& note : recorder.notes()) ++summary_.notes[note];
    if (ending.kind != Ending::Kind::done) {
      add_not_done(task, ending);
      if (summary_.not_done++ == 0)
        summary_.first_reason = fmt::format("{} {}: {}", task.row.method, to_string(ending.kind), ending.reason);
    }
    progress_.step(fmt::format("{} {} n={}", task.row.experiment, task.row.method, task.row.shape.nk));
  }

  void add_not_done(const Unit& task, const Ending& ending) {
    for (auto& known : summary_.endings)
      if (known.method == task.row.method && known.n == task.row.shape.nk && known.ending.kind == ending.kind &&
          known.ending.reason == ending.reason) {
        ++known.replicates;
        return;
      }
    if (summary_.endings.size() < 36) summary_.endings.push_back({task.row.method, task.row.shape.nk, ending, 1});
  }

  void run_side_by_side() {
    ExactCache exact;
    // Fewer cells than threads: one after the other, each with all threads. No number depends on it.
    const bool few = std::ssize(units_) < threads_;
    Context outer(few ? 1 : threads_);
    outer.for_blocks(static_cast<Index>(units_.size()), 1, [&](Context& single, Index place, Index) {
      const Unit& task = units_[static_cast<size_t>(place)];
      const double started = now();
      Context context(few ? threads_ : single.threads(), task.cell.problem.rounding);
      Recorder recorder;
      Ending ending;
      try {
        experiment_.run(Task{task.cell, task.replicate, context, exact}, recorder);
      } catch (...) {
        ending = ending_of_current_exception();
      }
      record(task, std::move(ending), std::move(recorder), now() - started);
    });
  }

  void run_groups() {
    std::map<std::string, std::vector<const Unit*>> groups;
    for (const auto& task : units_)
      groups[task.row.experiment + task.cell.input_key() + std::to_string(task.replicate)].push_back(&task);
    for (const auto& group : groups) {
      const auto& members = group.second;
      ExactCache exact;
      Context context(threads_);
      std::vector<Task> tasks;
      for (const auto* member : members) tasks.push_back({member->cell, member->replicate, context, exact});
      const double started = now();
      std::vector<bool> ended(members.size());
      const auto done = [&](size_t place, Ending ending, Recorder& recorder) {
        ended[place] = true;
        record(*members[place], std::move(ending), recorder, now() - started);
      };
      try {
        experiment_.run_group(tasks, done);
      } catch (...) {
        const Ending ending = ending_of_current_exception();
        for (size_t place = 0; place < members.size(); ++place)
          if (!ended[place]) record(*members[place], ending, {}, now() - started);
      }
    }
  }

  const std::vector<Unit>& units_;
  const ExperimentEntry& experiment_;
  int threads_;
  Store& store_;
  std::int64_t run_id_;
  std::mutex mutex_;
  RunSummary& summary_;
  Progress progress_;
};

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

void execute(std::vector<Unit> units, int threads, const Limits&, Store& store, std::int64_t run_id,
             RunSummary& summary) {
  if (units.empty()) return;
  // By input and replicate, so that what is exact is computed once; the order changes no number.
  std::stable_sort(units.begin(), units.end(), [](const Unit& a, const Unit& b) {
    return std::pair(a.cell.input_key(), a.replicate) < std::pair(b.cell.input_key(), b.replicate);
  });
  Execution(units, threads, store, run_id, summary).go();
}

}  // namespace attnbench
