#include "harness/timing/turns.hpp"

#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "harness/machine/peak_memory.hpp"
#include "harness/machine/rates.hpp"

namespace attnbench {

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Keeps what the one run took; prints nothing.
class OneRun final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const auto& run : runs) {
      seconds = run.real_accumulated_time;
      processor_seconds = run.cpu_accumulated_time;
    }
  }
  double seconds = 0, processor_seconds = 0;  // of all iterations; the latter summed over the threads of the process
};

// How often a thread of this process had to give up its core before its time was over.
long preemptions() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

void run_blocks(std::vector<Member*> members, Index blocks, int threads, Generator generator) {
  for (Index block = 0; block < blocks; ++block) {
    for (size_t i = members.size(); i > 1; --i) std::swap(members[i - 1], members[generator() % i]);
    for (Member* member : members) {
      member->subject->before_turn(member->iterations);
      const Turn turn = take_turn(*member->subject, member->iterations, threads);
      member->seconds.push_back(turn.seconds);
      member->disturbed.push_back(turn.disturbed ? 1 : 0);
    }
  }
}

// a over b, block by block.
std::vector<double> ratios(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> all;
  for (size_t block = 0; block < b.size(); ++block) all.push_back(a[block] / b[block]);
  return all;
}

void record_turns(const Member& member, const Member* exact, const Member& peer, Recorder& record) {
  const auto count = static_cast<Index>(member.seconds.size());
  record.array("seconds", "s", {count}, member.seconds);
  if (exact) record.array("speedup", "1", {count}, ratios(exact->seconds, member.seconds));
  if (peer.subject) {
    record.array("peer_seconds", "s", {count}, peer.seconds);
    record.array("peer_speedup", "1", {count}, ratios(peer.seconds, member.seconds));
  }
  record.array("disturbed", "1", {count}, member.disturbed);
  record.scalar("iterations", "1", static_cast<double>(member.iterations));
  if (const auto bytes = peak_bytes([&] { member.subject->call(); }))
    record.scalar("peak_bytes", "B", *bytes);
  else
    record.note("no peak memory: /proc/self/clear_refs, which sets it back, cannot be written here");
}

}  // namespace

Index calls_of_a_turn(TimedCall& subject, double turn_seconds) {
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

Turn take_turn(TimedCall& subject, Index iterations, int threads) {
  if (const auto seconds = subject.seconds_elsewhere(iterations)) return {*seconds, false};
  OneRun run;
  benchmark::RegisterBenchmark("turn",
                               [&subject](benchmark::State& state) {
                                 for (auto _ : state) {
                                   subject.call();
                                   benchmark::ClobberMemory();
                                 }
                               })
      ->Iterations(iterations)
      ->UseRealTime()
      ->MeasureProcessCPUTime();
  const long before = preemptions();
  benchmark::RunSpecifiedBenchmarks(&run, "all");
  benchmark::ClearRegisteredBenchmarks();
  return {run.seconds / static_cast<double>(iterations),
          threads == 1 ? run.processor_seconds < 0.95 * run.seconds : preemptions() > before};
}

std::vector<Parameter> turn_parameters() {
  return {Parameter::integer("blocks", 12, "blocks: samples of each method", 2, 100000),
          Parameter::real("turn", 20, "least length of a turn in milliseconds", 0.01, 1e6),
          Parameter::flag("pair", true, "measure exact softmax in the same blocks when it is no method of the run")};
}

std::vector<Metric> turn_metrics() {
  return {{"seconds", "s", "seconds per call, one sample a block"},
          {"speedup", "1", "seconds of exact softmax over seconds, in the same block"},
          {"disturbed", "1",
           "1 where something else had the processor during that block's turn: one thread, its processor time below "
           "95 % of the wall time; several, one was preempted"},
          {"iterations", "1", "calls in a turn"},
          {"peer_seconds", "s", "seconds per call of the peer, where one was given"},
          {"peer_speedup", "1", "seconds of the peer over seconds, in the same block"},
          {"peak_bytes", "B", "peak memory of an untimed call beyond inputs and output, in resident pages"}};
}

void run_in_turns(std::vector<Task>& tasks, const MakeTimedCall& make, const RecordMember& record,
                  const std::function<void(size_t, Ending, Recorder&)>& done, const MakePeer& make_peer) {
  const Params& options = tasks.front().cell.experiment;
  Cell exact_cell = tasks.front().cell;
  exact_cell.method = Params("methods", "softmax");
  // The ceilings are measured at once, not in between, and only the first group of a process pays.
  const int threads = tasks.front().context.threads();
  rates(tasks.front().cell.problem.shape.precision, threads);
  const auto member = [&](std::unique_ptr<TimedCall> subject) {
    Member made{std::move(subject)};
    made.iterations = calls_of_a_turn(*made.subject, options.real("turn") / 1000);
    return made;
  };
  const auto member_of = [&](const Task& task) { return member(make(task)); };

  std::vector<Member> members(tasks.size()), peers(tasks.size());  // without a subject: they have no turns
  std::vector<Recorder> recorders(tasks.size());
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
  for (size_t place = 0; place < tasks.size() && make_peer; ++place) {
    if (!members[place].subject) continue;
    try {
      peers[place] = member(make_peer(tasks[place], *members[place].subject));
    } catch (const Skip& e) {
      recorders[place].note(tasks[place].cell.method.spec() + " has no peer: " + e.what());
    }
  }
  std::vector<Member*> turns;
  for (auto& peer : peers)
    if (peer.subject) turns.push_back(&peer);
  Member* exact = nullptr;
  for (size_t place = 0; place < tasks.size(); ++place) {
    if (!members[place].subject) continue;
    turns.push_back(&members[place]);
    if (tasks[place].cell.method.spec() == exact_cell.method.spec()) exact = &members[place];
  }
  if (std::none_of(members.begin(), members.end(), [](const Member& m) { return m.subject != nullptr; })) return;
  Member partner;
  if (!exact && options.flag("pair")) {
    try {
      partner = member_of({exact_cell, tasks.front().replicate, tasks.front().context, tasks.front().exact});
      exact = &partner;
      turns.push_back(exact);
    } catch (const Skip&) {  // then there are no pairs
    } catch (const NumericallyInvalid&) {
    }
  }
  run_blocks(turns, options.integer("blocks"), threads,
             Streams(exact_cell.seed).stream("turns", exact_cell.input_key(), tasks.front().replicate));
  for (size_t place = 0; place < tasks.size(); ++place) {
    if (!members[place].subject) continue;
    Recorder& recorder = recorders[place];
    record_turns(members[place], exact, peers[place], recorder);
    members[place].subject->record(recorder);
    record(tasks[place], members[place], exact, recorder);
    done(place, {}, recorder);
  }
}

}  // namespace attnbench
