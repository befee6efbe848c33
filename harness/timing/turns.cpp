#include "harness/timing/turns.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

namespace attnbench {

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Keeps what the one run took; prints nothing.
class SecondsPerIteration final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const auto& run : runs) seconds = run.real_accumulated_time / static_cast<double>(run.iterations);
  }
  double seconds = 0;
};

void run_blocks(std::vector<Member*> members, Index blocks, Generator generator) {
  for (Index block = 0; block < blocks; ++block) {
    for (size_t i = members.size(); i > 1; --i) std::swap(members[i - 1], members[generator() % i]);
    for (Member* member : members) {
      member->subject->before_turn(member->iterations);
      member->seconds.push_back(seconds_per_call(*member->subject, member->iterations));
    }
  }
}

void record_turns(const Member& member, const Member* exact, Recorder& record) {
  const auto count = static_cast<Index>(member.seconds.size());
  record.array("seconds", "s", {count}, member.seconds);
  if (exact) {
    std::vector<double> ratios;
    for (size_t b = 0; b < member.seconds.size(); ++b) ratios.push_back(exact->seconds[b] / member.seconds[b]);
    record.array("speedup", "1", {count}, std::move(ratios));
  }
  record.scalar("iterations", "1", static_cast<double>(member.iterations));
}

}  // namespace

Index calls_of_a_turn(Subject& subject, double turn_seconds) {
  double least = std::numeric_limits<double>::infinity(), spent = 0;
  for (int call = 0; call < 3 && spent < 10 * turn_seconds; ++call) {
    const auto start = std::chrono::steady_clock::now();
    subject.call();
    const double seconds = seconds_since(start);
    least = std::min(least, seconds);
    spent += seconds;
  }
  return std::clamp<Index>(static_cast<Index>(std::ceil(turn_seconds / least)), 1, subject.most_calls());
}

double seconds_per_call(Subject& subject, Index iterations) {
  SecondsPerIteration reporter;
  benchmark::RegisterBenchmark("turn",
                               [&subject](benchmark::State& state) {
                                 for (auto _ : state) {
                                   subject.call();
                                   benchmark::ClobberMemory();
                                 }
                               })
      ->Iterations(iterations)
      ->UseRealTime();
  benchmark::RunSpecifiedBenchmarks(&reporter, "all");
  benchmark::ClearRegisteredBenchmarks();
  return reporter.seconds;
}

std::vector<Parameter> turn_parameters() {
  return {Parameter::integer("blocks", 12, "blocks: samples of each method", 2, 100000),
          Parameter::real("turn", 20, "least length of a turn in milliseconds", 0.01, 1e6)};
}

std::vector<Metric> turn_metrics() {
  return {{"seconds", "s", "seconds per call, one sample a block"},
          {"speedup", "1", "seconds of exact softmax over seconds, in the same block"},
          {"iterations", "1", "calls in a turn"}};
}

void run_in_turns(std::vector<Task>& tasks, const MakeSubject& make, const RecordMember& record,
                  const std::function<void(size_t, Ending, Recorder&)>& done) {
  const Params& options = tasks.front().cell.experiment;
  const auto member_of = [&](const Task& task) {
    Member member{make(task)};
    member.iterations = calls_of_a_turn(*member.subject, options.real("turn") / 1000);
    return member;
  };

  std::vector<Member> members(tasks.size());  // without a subject: ended before its first turn
  Recorder nothing;
  for (size_t place = 0; place < tasks.size(); ++place) {
    try {
      members[place] = member_of(tasks[place]);
    } catch (const Skip& e) {
      done(place, {Ending::Kind::skipped, e.what()}, nothing);
    } catch (const NumericallyInvalid& e) {
      done(place, {Ending::Kind::invalid, e.what()}, nothing);
    }
  }
  std::vector<Member*> turns;
  Member* exact = nullptr;
  for (size_t place = 0; place < tasks.size(); ++place) {
    if (!members[place].subject) continue;
    turns.push_back(&members[place]);
    if (tasks[place].cell.method.spec() == "softmax") exact = &members[place];
  }
  if (turns.empty()) return;
  Cell exact_cell = tasks.front().cell;
  exact_cell.method = Params("methods", "softmax");
  Member partner;
  if (!exact) {
    try {
      partner = member_of({exact_cell, tasks.front().replicate, tasks.front().context, tasks.front().exact});
      exact = &partner;
      turns.push_back(exact);
    } catch (const Skip&) {  // then there are no pairs
    } catch (const NumericallyInvalid&) {
    }
  }
  run_blocks(turns, options.integer("blocks"),
             Streams(exact_cell.seed).stream("turns", exact_cell.input_key(), tasks.front().replicate));
  for (size_t place = 0; place < tasks.size(); ++place) {
    if (!members[place].subject) continue;
    Recorder recorder;
    record_turns(members[place], exact, recorder);
    members[place].subject->record(recorder);
    record(tasks[place], members[place], exact, recorder);
    done(place, {}, recorder);
  }
}

}  // namespace attnbench
