// Time of one attention call, paired with exact softmax. Cells with the same problem and input form a group: in each
// block every method of the group and softmax have one turn, in an order drawn from the seed; a turn is one Google
// Benchmark run of fixed iterations, and a block gives one ratio. What is timed was checked before: finite, float equal
// to double, and rows of the second path (attention_rows) equal to what attend gives.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "harness/linalg/products.hpp"
#include "harness/measures/attention_matrix.hpp"
#include "harness/runner/experiment.hpp"

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

// The heads of one cell with their drawn methods, ready to be called. T is the scalar that is timed.
class Subject {
 public:
  virtual ~Subject() = default;
  virtual void call() = 0;
  // Throws NumericallyInvalid when the numbers are wrong; returns the relative rounding error against double.
  virtual double check() = 0;

  double time(Index iterations) {
    SecondsPerIteration reporter;
    benchmark::RegisterBenchmark("turn",
                                 [this](benchmark::State& state) {
                                   for (auto _ : state) {
                                     call();
                                     benchmark::ClobberMemory();
                                   }
                                 })
        ->Iterations(iterations)
        ->UseRealTime();
    benchmark::RunSpecifiedBenchmarks(&reporter, "all");
    benchmark::ClearRegisteredBenchmarks();
    return reporter.seconds;
  }
};

template <class T>
class Timed final : public Subject {
 public:
  explicit Timed(const Task& task) : task_(task), mask_(task.cell.problem.shape.mask) {
    for (Index h = 0; h < task.cell.problem.heads; ++h) {
      heads_.push_back(draw_cell_head(task.cell, task.replicate, h, Purpose::measured).template cast<T>());
      methods_.push_back(task.template method<T>(h, task.replicate));
      outputs_.emplace_back(heads_.back().Q.rows(), heads_.back().V.cols());
    }
  }

  // Threads go to heads first, then to rows inside a head.
  void call() override {
    const auto attend = [&](Context& context, Index h) {
      const auto i = static_cast<size_t>(h);
      methods_[i]->attend(heads_[i].view(), mask_, context, outputs_[i]);
    };
    const auto heads = static_cast<Index>(heads_.size());
    if (heads == 1)
      attend(task_.context, 0);
    else
      task_.context.for_blocks(heads, 1, [&](Context& single, Index h, Index) { attend(single, h); });
  }

  double check() override {
    call();
    require_finite<T>(outputs_[0], "output");
    const HeadData<double> head = heads_[0].template cast<double>();
    const auto method = task_.template method<double>(0, task_.replicate);
    Matrix<double> reference(head.Q.rows(), head.V.cols());
    method->attend(head.view(), mask_, task_.context, reference);
    if (const auto* rows = method->rows()) {
      const Index count = std::min<Index>(8, head.Q.rows()), first = head.Q.rows() - count;
      Matrix<double> A(count, head.K.rows());
      rows->attention_rows(head.view(), mask_, first, task_.context, A);
      Matrix<double> second(count, head.V.cols());
      multiply<double>(task_.context, A, head.V, second);
      const double difference = (second - reference.bottomRows(count)).norm() / (second.norm() + 1e-300);
      if (!(difference < 1e-8))
        throw NumericallyInvalid(fmt::format("attend differs from attention_rows times V by {:.1e}", difference));
    }
    const double rounding = (outputs_[0].template cast<double>() - reference).norm() / (reference.norm() + 1e-300);
    const auto claims = find<MethodEntry>(task_.cell.method.name()).claims(task_.cell.method, task_.cell.problem.shape);
    // Weights of any sign can cancel in the normaliser, and then float is rightly far from double: recorded, not
    // judged.
    if (claims.non_negative && !(rounding < 1e-2))
      throw NumericallyInvalid(fmt::format("float differs from double by {:.1e} of the output's norm", rounding));
    return rounding;
  }

 private:
  Task task_;
  Mask mask_;
  std::vector<HeadData<T>> heads_;
  std::vector<std::unique_ptr<Approximation<T>>> methods_;
  std::vector<Matrix<T>> outputs_;
};

std::unique_ptr<Subject> make_subject(const Task& task) {
  if (task.cell.problem.shape.precision == Precision::f32) return std::make_unique<Timed<float>>(task);
  return std::make_unique<Timed<double>>(task);
}

struct Member {
  size_t place;  // in the group's tasks; the partner softmax has none
  std::unique_ptr<Subject> subject;
  Index iterations = 1;
  double rounding = 0;
  std::vector<double> seconds = {};
};

// Enough iterations for a turn of about `turn_seconds`, from one warm call.
Index iterations_for(Subject& subject, double turn_seconds) {
  const auto start = std::chrono::steady_clock::now();
  subject.call();
  return std::clamp<Index>(static_cast<Index>(std::ceil(turn_seconds / seconds_since(start))), 1, 1'000'000);
}

void run_blocks(std::vector<Member*> members, Index blocks, Generator generator) {
  for (Index block = 0; block < blocks; ++block) {
    for (size_t i = members.size(); i > 1; --i) std::swap(members[i - 1], members[generator() % i]);
    for (Member* member : members) member->seconds.push_back(member->subject->time(member->iterations));
  }
}

void record_samples(const Task& task, const Member& member, const Member* exact, Recorder& record) {
  const auto count = static_cast<Index>(member.seconds.size());
  const auto& shape = task.cell.problem.shape;
  const Work work = find<MethodEntry>(task.cell.method.name()).cost(task.cell.method, shape);
  const auto heads = static_cast<double>(task.cell.problem.heads);
  record.array("seconds", "s", {count}, member.seconds);
  if (exact) {
    std::vector<double> ratios;
    for (size_t b = 0; b < member.seconds.size(); ++b) ratios.push_back(exact->seconds[b] / member.seconds[b]);
    record.array("speedup", "1", {count}, std::move(ratios));
  }
  record.scalar("iterations", "1", static_cast<double>(member.iterations));
  record.scalar("rounding_error", "1", member.rounding);
  record.scalar("flops", "1", heads * work.flops);
  record.scalar("exps", "1", heads * work.exps);
}

void run_group(std::vector<Task>& tasks, const std::function<void(size_t, Ending, Recorder&)>& done) {
  const Params& options = tasks.front().cell.experiment;
  const double turn = options.real("turn") / 1000;
  Cell exact_cell = tasks.front().cell;
  exact_cell.method = Params("methods", "softmax");
  const Task exact_task{exact_cell, tasks.front().replicate, tasks.front().context, tasks.front().exact};

  std::vector<Member> members;
  Member exact{tasks.size(), nullptr};
  for (size_t place = 0; place < tasks.size(); ++place) {
    Recorder nothing;
    try {
      Member member{place, make_subject(tasks[place])};
      member.rounding = member.subject->check();
      member.iterations = iterations_for(*member.subject, turn);
      members.push_back(std::move(member));
    } catch (const Skip& e) {
      done(place, {Ending::Kind::skipped, e.what()}, nothing);
    } catch (const NumericallyInvalid& e) {
      done(place, {Ending::Kind::invalid, e.what()}, nothing);
    }
  }
  if (members.empty()) return;
  std::vector<Member*> turns;
  for (auto& member : members) turns.push_back(&member);
  const Member* partner = nullptr;
  for (const auto& member : members)
    if (tasks[member.place].cell.method.name() == "softmax") partner = &member;
  if (!partner) {
    exact.subject = make_subject(exact_task);
    exact.iterations = iterations_for(*exact.subject, turn);
    turns.push_back(&exact);
    partner = &exact;
  }
  run_blocks(turns, options.integer("blocks"),
             Streams(exact_cell.seed).stream("turns", exact_cell.input_key(), exact_task.replicate));
  for (const auto& member : members) {
    Recorder record;
    record_samples(tasks[member.place], member, partner, record);
    done(member.place, {}, record);
  }
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "speed",
             .summary = "time of one attention call, paired block by block with exact softmax",
             .formula = "seconds per call of all heads; speedup = seconds of softmax / seconds, within a block",
             .reference = "Katharopoulos et al. 2020, arXiv:2006.16236, Fig. 1, for time against n",
             .cost = "blocks x turn for each method and for softmax"},
    .parameters = {Parameter::integer("blocks", 12, "blocks: samples of each method", 2, 100000),
                   Parameter::real("turn", 20, "least length of a turn in milliseconds", 0.01, 1e6)},
    .metrics = {{"seconds", "s", "seconds per call, one sample a block"},
                {"speedup", "1", "seconds of exact softmax over seconds, in the same block"},
                {"iterations", "1", "calls in a turn"},
                {"rounding_error", "1", "|output - output in double|_F / |output in double|_F of head 0"},
                {"flops", "1", "FLOPs of a call by the method's cost formula"},
                {"exps", "1", "exponentials of a call by the method's cost formula"}},
    .headline = {.metric = "seconds", .label = "seconds per call"},
    .run_group = run_group,
});

}  // namespace
}  // namespace attnbench
