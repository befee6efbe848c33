#include "harness/timing/turns.hpp"

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "harness/core/torch_place.hpp"
#include "harness/linalg/bfloat16_products.hpp"
#include "harness/machine/counters.hpp"
#include "harness/machine/device_facts.hpp"
#include "harness/machine/peak_memory.hpp"

namespace attnbench {

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Keeps the times of a single run and prints nothing.
class OneRun final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const auto& run : runs) {
      seconds = run.real_accumulated_time;
      processor_seconds = run.cpu_accumulated_time;
    }
  }
  double seconds = 0, processor_seconds = 0;  // of all iterations; processor time is summed over the threads
};

// How often a thread of this process lost its core before its time slice ended.
long preemptions() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void record_handovers(const Member& member, const std::string& spec, Recorder& record) {
  std::vector<double> conversion, interpreter;
  for (const Handover& one : member.handovers) {
    conversion.push_back(one.conversion);
    interpreter.push_back(one.interpreter);
  }
  if (conversion.empty() || median(conversion) == 0) return;  // no call was handed over
  record.scalar("conversion_seconds", "s", median(conversion));
  if (median(interpreter) == 0) return;  // the device's clock has only what the device does
  record.scalar("interpreter_seconds", "s", median(interpreter));
  record.note(fmt::format("{} is Python: of its seconds, {:.1g} are the interpreter's; conversion is not among them",
                          spec, median(interpreter)));
}

// Memory and rates of a device are the device's own to tell.
void record_memory(Member& member, const std::string& spec, Recorder& record) {
  take_device_facts();
  const auto bytes = peak_bytes([&] { member.subject->call(); });
  const auto told = take_device_facts();
  if (told && told->rates) member.rates = *told->rates;
  if (told && told->peak_bytes)
    record.scalar("peak_bytes", "B", *told->peak_bytes);
  else if (bytes)
    record.scalar("peak_bytes", "B", *bytes);
  else
    record.note("no peak memory: /proc/self/clear_refs, which resets it, cannot be written here");
  if (told && !told->backend.empty())
    record.note(fmt::format("{} was computed by the backend {}", spec, told->backend));
}

// Of a call after another one, so that caches hold what they can.
void record_events(Member& member, Recorder& record) {
  if (!Counters(hardware_events()).available()) return;
  member.subject->call();
  const Counters counters(hardware_events());
  member.subject->call();
  const auto counts = counters.counts();
  if (!counts) return;
  record.scalar("instructions", "1", counts->at(0));
  record.scalar("cycles", "1", counts->at(1));
  record.scalar("cache_misses", "1", counts->at(2));
}

// a over b, block by block.
std::vector<double> ratios(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> all;
  for (size_t block = 0; block < b.size(); ++block) all.push_back(a[block] / b[block]);
  return all;
}

// Throws Skip where products of bfloat16 would be emulated. A method in PyTorch has its own reason.
std::unique_ptr<TimedCall> made(const Timing& timing, const Task& task) {
  if (task.cell.problem.shape.precision == Precision::bf16 && !bfloat16_products_are_fast &&
      !computes_by_torch(task.cell.method))
    throw Skip(
        "precision bf16: this processor (or build) has no AVX-512 BF16; "
        "a time of the emulation would say nothing about it");
  return timing.make(task);
}

Member member(std::unique_ptr<TimedCall> subject, const Task& task) {
  Member made{.subject = std::move(subject)};
  if (made.subject) made.iterations = calls_of_a_turn(*made.subject, task.cell.experiment.real("turn") / 1000);
  return made;
}

}  // namespace

Index calls_of_a_turn(TimedCall& subject, double turn_seconds) {
  double least = std::numeric_limits<double>::infinity(), spent = 0;
  for (int call = 0; call < 3 && spent < 10 * turn_seconds; ++call) {
    const auto start = std::chrono::steady_clock::now();
    const auto told = subject.seconds_elsewhere(1);
    if (!told) subject.call();
    const double seconds = told.value_or(seconds_since(start));
    least = std::min(least, seconds);
    spent += seconds;
  }
  return std::clamp<Index>(static_cast<Index>(std::ceil(turn_seconds / least)), 1, subject.most_calls());
}

Turn take_turn(TimedCall& subject, Index iterations, int threads) {
  take_handover();  // that of earlier calls
  if (const auto seconds = subject.seconds_elsewhere(iterations)) return {*seconds, false, take_handover()};
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
  Handover handed = take_handover();
  const auto calls = static_cast<double>(iterations);
  // Threads may convert in parallel. Dividing by the number of those that did never subtracts more than the time that
  // passed.
  handed.conversion /= calls * std::max(1, handed.callers);
  handed.interpreter /= calls;
  return {run.seconds / calls - handed.conversion,
          threads == 1 ? run.processor_seconds < 0.95 * run.seconds : preemptions() > before, handed};
}

std::vector<double> slower_turns(const std::vector<double>& seconds) {
  if (seconds.empty()) return {};
  std::vector<double> sorted = seconds, marks;
  const auto quarter = sorted.begin() + (std::ssize(sorted) - 1) / 4;
  std::nth_element(sorted.begin(), quarter, sorted.end());
  for (const double one : seconds) marks.push_back(one > 1.15 * *quarter ? 1 : 0);
  return marks;
}

std::vector<Parameter> turn_parameters() {
  return {Parameter::integer("blocks", 12, "blocks: samples of each method", 2, 100000),
          Parameter::real("turn", 20, "least length of a turn in milliseconds", 0.01, 1e6),
          Parameter::flag("pair", true, "measure exact softmax in the same blocks if it is not a method of the run")};
}

std::vector<Metric> turn_metrics() {
  return {
      by_block({"seconds", "s", "seconds per call, one sample a block", {}, "seconds per call", "log10"}),
      by_block({"speedup", "1", "seconds of exact softmax over seconds, in the same block", Better::more,
                "times faster than softmax", "log2"}),
      by_block(
          {"disturbed", "1",
           "1 where something else may have slowed that block's turn: it had the processor (one thread, its processor "
           "time below 95 % of the wall time; several, one was preempted), or kept a quarter of another core busy, or "
           "the turn took 15 % longer than the fastest quarter of the cell's turns"}),
      {"iterations", "1", "calls in a turn"},
      {"conversion_seconds", "s",
       "methods in Python: time per call to make views and copy results, which `seconds` excludes"},
      {"interpreter_seconds", "s",
       "methods in Python: time of calls of a method that does nothing, which `seconds` includes"},
      by_block({"load", "1",
                "cores beside the measured ones that other processes kept busy around that block's turn; where turns "
                "take all "
                "cores, before the session"}),
      {"session", "s",
       "when the blocks began, in seconds since 1970: of cells that share it, the same blocks are of the same moment"},
      by_block({"peer_seconds", "s", "seconds per call of the peer, where one was given"}),
      by_block({"peer_speedup", "1", "seconds of the peer over seconds, in the same block", Better::more}),
      {"peak_bytes",
       "B",
       "peak memory of an untimed call beyond inputs and output, in resident pages",
       {},
       "peak memory beyond inputs and output",
       "log10"},
      {"instructions", "1",
       "of an untimed call, in user mode, where the system counts events of the processor; most virtual machines do "
       "not"},
      {"cycles", "1", "likewise"},
      {"cache_misses", "1", "reads that no cache had, likewise"}};
}

TimedMember::TimedMember(const Timing& timing, const Task& task)
    : timing_(timing), task_(task), own_(member(made(timing, task), task)) {
  if (!timing.peer) return;
  try {
    peer_ = member(timing.peer(task, *own_.subject), task);
  } catch (const Skip& e) {
    noted_.note(task.cell.method.spec() + " has no peer: " + e.what());
  }
}

double TimedMember::turn(Whose whose) {
  Member& member = whose == Whose::own ? own_ : peer_;
  if (member.seconds.empty() || member.seconds.back() < warmed_below) member.subject->warm_up();
  member.subject->before_turn(member.iterations);
  const Turn turn = take_turn(*member.subject, member.iterations, task_.context.threads());
  member.seconds.push_back(turn.seconds);
  member.preempted.push_back(turn.preempted ? 1 : 0);
  member.handovers.push_back(turn.handover);
  if (whose == Whose::own && !computes_on_device(task_.cell.method))
    member.arithmetic.push_back(arithmetic_now(task_.cell.problem.shape.precision, task_.context.threads()));
  return turn.seconds;
}

std::vector<double> TimedMember::disturbed(const std::vector<double>& beside) const {
  std::vector<double> marks = slower_turns(own_.seconds);
  for (size_t block = 0; block < marks.size(); ++block)
    if (own_.preempted[block] == 1 || beside.at(block) == 1) marks[block] = 1;
  return marks;
}

void TimedMember::record(const Surroundings& around, Recorder& record) {
  own_.rates = around.rates;
  for (const auto& note : noted_.notes()) record.note(note);
  const auto count = static_cast<Index>(own_.seconds.size());
  record.array("seconds", "s", {count}, own_.seconds);
  if (!around.exact.empty()) record.array("speedup", "1", {count}, ratios(around.exact, own_.seconds));
  if (has_peer()) {
    record.array("peer_seconds", "s", {count}, peer_.seconds);
    record.array("peer_speedup", "1", {count}, ratios(peer_.seconds, own_.seconds));
    peer_.subject->record(record);
  }
  record.array("disturbed", "1", {count}, disturbed(around.beside));
  record.scalar("iterations", "1", static_cast<double>(own_.iterations));
  record.array("load", "1", {count}, around.load);
  record.scalar("session", "s", around.session);
  record_handovers(own_, task_.cell.method.spec(), record);
  record_memory(own_, task_.cell.method.spec(), record);
  if (!computes_on_device(task_.cell.method)) record_events(own_, record);
  own_.subject->record(record);
  if (timing_.record) timing_.record(task_, own_, record);
}

std::string rounding_warning(const std::string& method, double rounding) {
  if (!(rounding > 1e-2)) return {};
  return fmt::format(
      "{}: float differs from double by {:.1e} of the output's norm; attnbench check {} says whether its "
      "weights cancel or it is wrong in float",
      method, rounding, method);
}

void record_rounding(const Params& method, double rounding, Recorder& record) {
  record.scalar("rounding_error", "1", rounding);
  if (const std::string warning = rounding_warning(method.spec(), rounding); !warning.empty()) record.note(warning);
}

}  // namespace attnbench
