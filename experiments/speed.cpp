// Time of one attention call, paired with exact softmax. Before timing, the call is checked: output finite, float equal
// to double, and rows of the second path (attention_rows) equal to those of attend.
#include <fmt/format.h>

#include <algorithm>

#include "harness/core/all_heads.hpp"
#include "harness/core/torch_place.hpp"
#include "harness/linalg/products.hpp"
#include "harness/measures/attention_matrix.hpp"
#include "harness/timing/peer.hpp"
#include "harness/timing/roofline.hpp"

namespace attnbench::speed_experiment {
namespace {

class OneCall : public TimedCall {
 public:
  // The peer's implementation of the method, with the same heads and draws.
  virtual std::unique_ptr<TimedCall> at(Peer& peer) const = 0;
};

// The heads of one cell with their drawn methods, ready to be called. T is the scalar that is timed.
template <class T>
class Timed final : public OneCall {
 public:
  explicit Timed(const Task& task) : task_(task), mask_(task.cell.problem.shape.mask) {
    for (Index h = 0; h < task.cell.problem.heads; ++h) {
      heads_.push_back(draw_cell_head(task.cell, task.replicate, h, Purpose::measured).template cast<T>());
      methods_.push_back(task.template method<T>(h, task.replicate));
      outputs_.emplace_back(heads_.back().Q.rows(), heads_.back().V.cols());
    }
    together_ = all_heads<T>(methods_);
    on_device_ = together_ && computes_on_device(task.cell.method);
    call();
    check();
  }

  // Threads are divided among heads first; the threads of one head share its rows.
  void call() override {
    if (together_) return together_->attend(heads_, mask_, task_.context, outputs_);
    task_.context.for_blocks(static_cast<Index>(heads_.size()), 1, [&](Context& context, Index h, Index) {
      const auto i = static_cast<size_t>(h);
      methods_[i]->attend(heads_[i].view(), mask_, context, outputs_[i]);
    });
  }

  // A device makes all calls of a turn with inputs that move there once, after a call of its own that is not timed.
  void warm_up() override {
    if (!on_device_) call();
  }
  std::optional<double> seconds_elsewhere(Index calls) override {
    return on_device_ ? together_->seconds_on_device(heads_, mask_, calls) : std::nullopt;
  }

  void record(Recorder& recorder) const override { record_rounding(task_.cell.method, rounding_, recorder); }

  std::unique_ptr<TimedCall> at(Peer& peer) const override {
    std::vector<Tensors> states;
    for (const auto& method : methods_) states.push_back(method->state());
    return peer.prepare<T>(task_.cell.method, heads_, states, mask_.causal, task_.context.threads(), outputs_);
  }

 private:
  // Throws NumericallyInvalid if an output is not finite or differs too much from double.
  void check() {
    for (const auto& output : outputs_) require_finite<T>(output, "output");
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
    rounding_ = (outputs_[0].template cast<double>() - reference).norm() / (reference.norm() + 1e-300);
    const auto claims = find<MethodEntry>(task_.cell.method.name()).claims(task_.cell.method, task_.cell.problem.shape);
    // Weights of both signs can cancel in the normaliser. A large difference of float and double is then no error: it
    // is recorded, but does not fail the cell.
    if (claims.non_negative &&
        !(rounding_ < limit_at_precision(task_.cell.method, task_.cell.problem.shape.precision, 1e-2)))
      throw NumericallyInvalid(fmt::format("float differs from double by {:.1e} of the output's norm", rounding_));
  }

  Task task_;
  Mask mask_;
  std::vector<HeadData<T>> heads_;
  std::vector<std::unique_ptr<Approximation<T>>> methods_;
  std::unique_ptr<AllHeads<T>> together_;  // null: the method takes one head a call
  bool on_device_ = false;
  std::vector<Matrix<T>> outputs_;
  double rounding_ = 0;  // |output - output in double|_F / |output in double|_F of head 0
};

std::unique_ptr<OneCall> make_subject(const Task& task) {
  if (in_float(task.cell.problem.shape.precision)) return std::make_unique<Timed<float>>(task);
  return std::make_unique<Timed<double>>(task);
}

void record_work(const Task& task, const Member& member, Recorder& record) {
  const auto& [nq, nk, d, dv, mask, precision] = task.cell.problem.shape;
  const auto heads = static_cast<double>(task.cell.problem.heads);
  const Work work = find<MethodEntry>(task.cell.method.name()).cost(task.cell.method, task.cell.problem.shape);
  const Work exact = find<MethodEntry>("softmax").cost(Params("methods", "softmax"), task.cell.problem.shape);
  if (work.flops > 0) record.scalar("speedup_by_flops", "1", exact.flops / work.flops);
  const auto numbers = static_cast<double>(nq * d + nk * d + nk * dv + nq * dv);
  record_roofline(member,
                  {.work = {heads * work.flops, heads * work.exps}, .bytes = heads * numbers * bytes_of(precision)},
                  record);
}

std::vector<Metric> metrics() {
  std::vector<Metric> all = turn_metrics();
  all.push_back({"rounding_error", "1", "|output - output in double|_F / |output in double|_F of head 0", Better::less,
                 "rounding of float", "log10"});
  all.push_back({"speedup_by_flops", "1",
                 "FLOPs of softmax over FLOPs of the method: the speedup if nothing else cost time", Better::more});
  for (const Metric& metric : roofline_metrics()) all.push_back(metric);
  return all;
}

std::vector<Parameter> parameters() {
  auto all = turn_parameters();
  all.push_back(Parameter::text("peer", "",
                                "program of another implementation that takes turns as well, such as "
                                "scripts/bench/peers/pytorch.py; none when empty"));
  return all;
}

std::unique_ptr<TimedCall> peer_of(const Task& task, TimedCall& ours) {
  const std::string& program = task.cell.experiment.text("peer");
  if (program.empty()) return nullptr;
  Peer peer(program);
  return dynamic_cast<const OneCall&>(ours).at(peer);
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "speed",
             .summary = "time of one attention call, paired block by block with exact softmax",
             .formula = "seconds per call of all heads; speedup = seconds of softmax / seconds, within a block",
             .reference = "Katharopoulos et al. 2020, arXiv:2006.16236, Fig. 1, for time against n",
             .cost = "blocks x turn for each method and for softmax"},
    .parameters = parameters(),
    .metrics = metrics(),
    .headline = {.metric = "seconds", .label = "seconds per call"},
    .check =
        [](const Cell& cell) {
          const auto& peer = cell.experiment.text("peer");
          if (peer.empty()) return;
          if (cell.problem.shape.precision == Precision::bf16)
            throw Misuse("speed: a peer's products are not of bf16; expected --precision f32, or no peer");
          Peer::check(peer);
        },
    .timed = Timing{.make = make_subject, .record = record_work, .peer = peer_of},
});

}  // namespace
}  // namespace attnbench::speed_experiment
