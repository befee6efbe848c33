// Time of one training step of attention, forward and backward, paired with exact softmax: the protocol of
// Katharopoulos et al., arXiv:2006.16236, Fig. 1. The loss is <G, out> with G normal. If a gradient is not finite, the
// cell ends before timing; the experiment gradient-rounding compares gradients in float and in double.
#include <fmt/format.h>

#include <chrono>

#include "experiments/loss_gradients.hpp"
#include "harness/core/all_heads.hpp"
#include "harness/measures/attention_matrix.hpp"
#include "harness/statistics/intervals.hpp"
#include "harness/timing/roofline.hpp"
#include "harness/timing/turns.hpp"

namespace attnbench::training_step_experiment {
namespace {

double seconds_between(std::chrono::steady_clock::time_point a, std::chrono::steady_clock::time_point b) {
  return std::chrono::duration<double>(b - a).count();
}

// One head with its method, its loss and the buffers of its gradients.
template <class T>
struct TrainedHead {
  TrainedHead(const HeadData<T>& given, const Matrix<T>& weights, const Approximation<T>& method)
      : head(given),
        G(weights),
        differentiable(method.differentiable()),
        out(head.Q.rows(), head.V.cols()),
        dQ(head.Q.rows(), head.Q.cols()),
        dK(head.K.rows(), head.K.cols()),
        dV(head.V.rows(), head.V.cols()) {}

  void forward(Mask mask, Context& context) { differentiable->forward(head.view(), mask, context, out, saved); }
  void backward(Mask mask, Context& context) {
    differentiable->backward(head.view(), mask, out, saved, G, context, {dQ, dK, dV});
  }

  const HeadData<T>& head;
  const Matrix<T>& G;
  const Differentiable<T>* differentiable;
  Matrix<T> out, dQ, dK, dV;
  std::vector<T> saved;
};

class Trained : public TimedCall {
 public:
  // The backward passes of one step: their operations, counted while they ran, and each input and result once. No
  // operations: they were not counted.
  virtual Demand backward_demand() const = 0;
  virtual std::vector<double> backward_seconds() const = 0;  // of one step, a sample a turn
};

template <class T>
class TrainingStep final : public Trained {
 public:
  explicit TrainingStep(const Task& task) : task_(task), mask_(task.cell.problem.shape.mask) {
    for (Index h = 0; h < task.cell.problem.heads; ++h) {
      data_.push_back(draw_cell_head(task.cell, task.replicate, h, Purpose::measured).template cast<T>());
      losses_.push_back(loss_weights(task, h).template cast<T>());
      methods_.push_back(task.template method<T>(h, task.replicate));
      if (!methods_.back()->differentiable()) throw Skip(task.cell.method.spec() + " has no gradients here");
    }
    for (size_t h = 0; h < data_.size(); ++h) heads_.emplace_back(data_[h], losses_[h], *methods_[h]);
    together_ = all_heads<T>(methods_);
    call();
    for (const auto* X : {&heads_[0].dQ, &heads_[0].dK, &heads_[0].dV}) require_finite<T>(*X, "gradient");
    in_one_call_ = together_ && together_->training_step(data_, losses_, mask_, 1);
    if (in_one_call_) return;
    Context counting;
    for (TrainedHead<T>& one : heads_) one.backward(mask_, counting);
    backward_.work = counting.work;
    const auto& shape = task.cell.problem.shape;
    const auto queries = static_cast<double>(shape.nq * (2 * shape.d + 2 * shape.dv));  // Q, dQ, out and G
    const auto keys = static_cast<double>(shape.nk * (2 * shape.d + 2 * shape.dv));     // K, dK, V and dV
    backward_.bytes = static_cast<double>(heads_.size() * sizeof(T)) * (queries + keys);
  }

  // The method itself times passes that take all heads in one call.
  std::optional<double> seconds_elsewhere(Index calls) override {
    if (!in_one_call_) return std::nullopt;
    const auto step = together_->training_step(data_, losses_, mask_, calls).value();
    if (calls_left_ > 0) turns_.back() = step;
    calls_left_ = 0;
    return step.forward + step.backward;
  }
  void warm_up() override {
    if (!in_one_call_) call();  // training_step has an untimed step of its own
  }

  // Heads run in parallel.
  void call() override {
    if (in_one_call_) return void(together_->training_step(data_, losses_, mask_, 1));
    using Clock = std::chrono::steady_clock;
    const auto each_head = [&](auto&& step) {
      task_.context.for_blocks(static_cast<Index>(heads_.size()), 1, [&](Context& context, Index h, Index) {
        step(heads_[static_cast<size_t>(h)], context);
      });
    };
    const auto start = Clock::now();
    each_head([&](TrainedHead<T>& one, Context& context) { one.forward(mask_, context); });
    const auto middle = Clock::now();
    each_head([&](TrainedHead<T>& one, Context& context) { one.backward(mask_, context); });
    const auto end = Clock::now();
    if (calls_left_ == 0) return;  // outside a turn
    --calls_left_;
    turns_.back().forward += seconds_between(start, middle);
    turns_.back().backward += seconds_between(middle, end);
  }

  void before_turn(Index calls) override {
    turns_.push_back({});
    calls_.push_back(static_cast<double>(calls));
    calls_left_ = calls;
  }

  Demand backward_demand() const override { return backward_; }
  std::vector<double> backward_seconds() const override {
    std::vector<double> seconds;
    for (size_t turn = 0; turn < turns_.size(); ++turn) seconds.push_back(turns_[turn].backward / calls_[turn]);
    return seconds;
  }

  void record(Recorder& recorder) const override {
    std::vector<double> ratios;
    for (const PassSeconds& turn : turns_) ratios.push_back(turn.backward / turn.forward);
    recorder.array("backward_over_forward", "1", {std::ssize(ratios)}, ratios);
  }

 private:
  Task task_;
  Mask mask_;
  std::vector<HeadData<T>> data_;
  std::vector<Matrix<T>> losses_;
  std::vector<std::unique_ptr<Approximation<T>>> methods_;
  std::unique_ptr<AllHeads<T>> together_;  // null: the method takes one head a call
  bool in_one_call_ = false;               // the passes take all heads
  std::vector<TrainedHead<T>> heads_;
  std::vector<PassSeconds> turns_;  // sums over the calls of a turn
  std::vector<double> calls_;       // of each turn
  Index calls_left_ = 0;            // in the current turn
  Demand backward_;
};

std::unique_ptr<Trained> make_subject(const Task& task) {
  if (in_float(task.cell.problem.shape.precision)) return std::make_unique<TrainingStep<float>>(task);
  return std::make_unique<TrainingStep<double>>(task);
}

void record_backward(const Task&, const Member& member, Recorder& record) {
  const auto& trained = dynamic_cast<const Trained&>(*member.subject);
  const Demand demand = trained.backward_demand();
  if (demand.work.flops == 0) return;
  const double least = roofline_seconds(demand, typical_rates(member)), seconds = median(trained.backward_seconds());
  record.scalar("backward_flops", "1", demand.work.flops);
  record.scalar("fma_peak", "FLOP/s", typical_rates(member).fma_peak);
  record.scalar("exp_rate", "1/s", typical_rates(member).exp_rate);
  record.scalar("backward_roofline_fraction", "1", least / seconds);
}

std::vector<Metric> metrics() {
  auto all = turn_metrics();
  all.insert(all.end(),
             {by_block({"backward_over_forward",
                        "1",
                        "time of the backward passes over that of the forward passes, one sample a block",
                        {},
                        "time of backward / time of forward"}),
              {"backward_flops", "1", "FLOPs of the backward passes, counted while they run"},
              {"backward_roofline_fraction", "1",
               "max((those FLOPs) / fma_peak + exps / exp_rate, bytes of inputs and gradients / bandwidth) over the "
               "median time of the backward passes, with the rates of arithmetic after the turns"},
              {"fma_peak", "FLOP/s", "multiply-adds on registers, the median of the moments after the turns"},
              {"exp_rate", "1/s", "exponentials in cache, likewise"}});
  return all;
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "training-step",
             .summary = "time of forward and backward of one attention call, paired with exact softmax",
             .formula = "seconds per forward and backward of all heads, loss <G, out>",
             .reference = "Katharopoulos et al. 2020, arXiv:2006.16236, Fig. 1",
             .cost = "blocks x turn for each method and for softmax"},
    .parameters = turn_parameters(),
    .metrics = metrics(),
    .headline = {.metric = "seconds", .label = "seconds per forward and backward"},
    .timed = Timing{.make = make_subject, .record = record_backward},
});

}  // namespace
}  // namespace attnbench::training_step_experiment
