// Time of one decoding step against position, paired with softmax over a cache of keys and values. A cell's n is the
// position: about n tokens are decoded untimed, then one token after another is timed. Every step moves the position,
// so a decoder starts a little before n and is rebuilt there once it is equally far past n. From position n on the
// input repeats its first tokens. Before timing, a step is checked: finite, and equal to causal attention in double.
#include <fmt/format.h>

#include <algorithm>

#include "harness/core/torch_place.hpp"
#include "harness/linalg/rows.hpp"
#include "harness/measures/attention_matrix.hpp"
#include "harness/statistics/intervals.hpp"
#include "harness/timing/turns.hpp"

namespace attnbench::decode_experiment {
namespace {

// A turn of more than one step begins with untimed steps, because the turns of other methods have evicted its data
// from the CPU caches.
constexpr Index warm_steps = 16, most_steps = 32;
// How many positions around n a decoder may pass through: 1 % of n, but at least two turns.
Index reach_of(Index n) { return std::max<Index>(2 * most_steps, n / 100); }
Index first_position(Index n) { return std::max<Index>(0, n - reach_of(n) / 2); }

template <class T>
HeadPart<T> tokens(const HeadData<T>& head, Index first, Index count) {
  return HeadPart<T>::tokens(head.view(), first, count);
}

// The heads of a cell: the tokens that are there at first, and those that the steps decode.
template <class T>
struct Tokens {
  explicit Tokens(const Task& task) {
    const auto& shape = task.cell.problem.shape;
    if (!shape.mask.causal) throw Skip("tokens are decoded one by one: run it causal (--causal)");
    if (shape.nq != shape.nk)
      throw Skip(fmt::format("{} queries and {} keys: decoding has one of each a token", shape.nq, shape.nk));
    n = shape.nk;
    first = first_position(n);
    for (Index h = 0; h < task.cell.problem.heads; ++h) {
      const HeadData<T> drawn = draw_cell_head(task.cell, task.replicate, h, Purpose::measured).template cast<T>();
      const auto extended = [&](const Matrix<T>& X) {
        Matrix<T> Y(first + reach_of(n), X.cols());
        for (Index i = 0; i < Y.rows(); ++i) Y.row(i) = X.row(i % n);
        return Y;
      };
      std::vector<Index> again(static_cast<size_t>(first + reach_of(n)));
      for (size_t i = 0; i < again.size(); ++i) again[i] = static_cast<Index>(i) % n;
      heads.push_back({extended(drawn.Q), extended(drawn.K), extended(drawn.V), part_of(drawn.extra, again, again)});
    }
  }

  Index n, first;
  std::vector<HeadData<T>> heads;
};

// The methods of one cell, one per head, and their decoders, which move through the positions near `around`.
template <class T>
class Walk final : public TimedCall {
 public:
  using Methods = std::vector<std::unique_ptr<Approximation<T>>>;

  Walk(const Task& task, const Tokens<T>& given, const Methods& methods, Index around)
      : task_(task), given_(given), methods_(methods), around_(around) {
    for (const auto& head : given.heads) outputs_.emplace_back(1, head.V.cols());
    start_at(around);
  }

  // Decodes one token in every head; heads run in parallel.
  void call() override {
    task_.context.for_blocks(static_cast<Index>(decoders_.size()), 1, [&](Context& context, Index h, Index) {
      const auto i = static_cast<size_t>(h);
      decoders_[i]->step(tokens(given_.heads[i], position_, 1).view(), context, outputs_[i]);
    });
    ++position_;
  }

  void before_turn(Index calls) override {
    const Index warm = calls > 1 ? warm_steps : 0, first = first_position(around_);
    const Index needed = warm + calls + 1;  // + 1: memory is measured in one more call after the turns
    if (position_ + needed > first + reach_of(around_)) start_at(first);
    for (Index step = 0; step < warm; ++step) call();
  }
  Index most_calls() const override { return most_steps; }

  const Matrix<T>& output() const { return outputs_[0]; }  // of head 0
  size_t bytes() const {
    size_t sum = 0;
    for (const auto& decoder : decoders_) sum += decoder->bytes();
    return sum;
  }

 private:
  void start_at(Index position) {
    decoders_.clear();
    position_ = position;
    Shape shape = task_.cell.problem.shape;
    shape.nq = shape.nk = first_position(around_) + reach_of(around_);
    for (size_t h = 0; h < methods_.size(); ++h) {
      decoders_.push_back(methods_[h]->decoder(shape));
      if (!decoders_.back())
        throw Skip(task_.cell.method.spec() + " has no decoder: it attends to a whole sequence only");
      decoders_.back()->prefill(tokens(given_.heads[h], 0, position).view(), task_.context);
    }
  }

  Task task_;
  const Tokens<T>& given_;
  const Methods& methods_;
  Index around_;
  std::vector<std::unique_ptr<Decoder<T>>> decoders_;
  std::vector<Matrix<T>> outputs_;  // 1 x dv
  Index position_ = 0;              // tokens decoded so far
};

class Decoded : public TimedCall {
 public:
  virtual const std::vector<double>& from_seconds() const = 0;  // of one step at `from`, a sample a block
  virtual double state_bytes() const = 0;                       // of all heads, at position n
};

// Times steps at position n, and before each such turn one turn at position `from`. `growth` is the ratio of these two
// adjacent turns, so that a slow drift of the machine's speed cancels.
template <class T>
class Decoding final : public Decoded {
 public:
  explicit Decoding(const Task& task)
      : task_(task),
        given_(task),
        methods_(draw(task)),
        here_(task, given_, methods_, given_.n),
        from_(task, given_, methods_, std::min(task.cell.experiment.integer("from"), given_.n)),
        state_bytes_(here_.bytes()) {
    here_.call();
    check();
    from_calls_ = calls_of_a_turn(from_, task.cell.experiment.real("turn") / 1000);
  }

  void call() override { here_.call(); }
  void before_turn(Index calls) override {
    from_.before_turn(from_calls_);
    from_seconds_.push_back(take_turn(from_, from_calls_, task_.context.threads()).seconds);
    here_.before_turn(calls);
  }
  void warm_up() override {}  // before_turn does
  Index most_calls() const override { return here_.most_calls(); }

  void record(Recorder& recorder) const override {
    recorder.scalar("state_bytes", "B", state_bytes());
    recorder.scalar("row_error", "1", row_error_);
    record_rounding(task_.cell.method, rounding_, recorder);
  }
  const std::vector<double>& from_seconds() const override { return from_seconds_; }
  double state_bytes() const override { return static_cast<double>(state_bytes_); }

 private:
  static typename Walk<T>::Methods draw(const Task& task) {
    typename Walk<T>::Methods methods;
    for (Index h = 0; h < task.cell.problem.heads; ++h) methods.push_back(task.template method<T>(h, task.replicate));
    return methods;
  }

  // Throws NumericallyInvalid if the first step of head 0 is wrong.
  void check() {
    require_finite<T>(here_.output(), "step");
    const HeadData<double> seen = seen_in_double();
    const Matrix<double> exact = exact_row(seen), want = row_in_double(seen);
    row_error_ = (here_.output().template cast<double>() - exact).norm() / (exact.norm() + 1e-300);
    rounding_ = (here_.output().template cast<double>() - want).norm() / (want.norm() + 1e-300);
    const auto claims = find<MethodEntry>(task_.cell.method.name()).claims(task_.cell.method, task_.cell.problem.shape);
    // Weights of both signs can cancel in the normaliser. A large difference of float and double is then no error: it
    // is recorded, but does not fail the cell.
    if (claims.non_negative &&
        !(rounding_ < limit_at_precision(task_.cell.method, task_.cell.problem.shape.precision, 1e-3)))
      throw NumericallyInvalid(
          fmt::format("a step differs from causal attention in double by {:.1e} of the row's norm", rounding_));
  }

  // Tokens 0 to n of head 0.
  HeadData<double> seen_in_double() const {
    const HeadPart<T> part = tokens(given_.heads[0], 0, given_.n + 1);
    const Head<T> seen = part.view();
    return {seen.Q.template cast<double>(), seen.K.template cast<double>(), seen.V.template cast<double>(),
            *seen.extra};
  }

  // Row n of exact attention.
  Matrix<double> exact_row(const HeadData<double>& head) const {
    Matrix<double> weights(1, head.K.rows()), row(1, head.V.cols());
    multiply_transposed<double>(task_.context, head.Q.bottomRows(1).eval(), head.K, weights);
    softmax_within<double>(task_.context, weights, 0, 0, weights.cols());
    multiply<double>(task_.context, weights, head.V, row);
    return row;
  }

  // Row n of causal attention, from the same draw.
  Matrix<double> row_in_double(const HeadData<double>& head) const {
    const Index last = given_.n;
    const Tensors state = methods_[0]->state();
    const auto method = make_approximation<double>({.shape = task_.cell.problem.shape,
                                                    .params = task_.cell.method,
                                                    .streams = Streams(task_.cell.seed),
                                                    .replicate = task_.replicate,
                                                    .state = &state});
    Matrix<double> row(1, head.V.cols());
    if (const auto* rows_of = method->rows()) {
      Matrix<double> A(1, last + 1);
      rows_of->attention_rows(head.view(), {.causal = true}, last, task_.context, A);
      multiply<double>(task_.context, A, head.V, row);
      return row;
    }
    Shape single = task_.cell.problem.shape;
    single.nq = 1;
    single.nk = last + 1;
    single.mask = {.causal = true, .offset = last};
    const auto& entry = find<MethodEntry>(task_.cell.method.name());
    if (entry.claims(task_.cell.method, single).no_form.empty()) {
      method->attend(HeadPart<double>(head.view(), last, 1, 0, last + 1).view(), single.mask, task_.context, row);
      return row;
    }
    Matrix<double> all(last + 1, head.V.cols());  // it attends to as many queries as keys only
    method->attend(head.view(), {.causal = true}, task_.context, all);
    return all.bottomRows(1);
  }

  Task task_;
  Tokens<T> given_;
  typename Walk<T>::Methods methods_;
  Walk<T> here_, from_;
  size_t state_bytes_;
  double rounding_ = 0;   // |step - row in double| / |row in double| of head 0
  double row_error_ = 0;  // |step - row of exact attention| / |that row| of head 0
  Index from_calls_ = 1;
  std::vector<double> from_seconds_;
};

std::unique_ptr<Decoded> make_subject(const Task& task) {
  if (in_float(task.cell.problem.shape.precision)) return std::make_unique<Decoding<float>>(task);
  return std::make_unique<Decoding<double>>(task);
}

void record_steps(const Task&, const Member& member, Recorder& record) {
  const auto count = static_cast<Index>(member.seconds.size());
  const auto& decoded = dynamic_cast<const Decoded&>(*member.subject);
  const auto& from_seconds = decoded.from_seconds();
  std::vector<double> rates, growth;
  for (size_t b = 0; b < member.seconds.size(); ++b) {
    rates.push_back(1 / member.seconds[b]);
    growth.push_back(member.seconds[b] / from_seconds[b]);
  }
  record.array("tokens_per_second", "1/s", {count}, std::move(rates));
  record.array("growth", "1", {count}, std::move(growth));
  record.scalar("bandwidth_fraction", "1", decoded.state_bytes() / median(member.seconds) / member.rates.bandwidth);
}

std::vector<Parameter> parameters() {
  auto all = turn_parameters();
  all.push_back(Parameter::integer("from", 1024, "growth is against a step at this position, n at most", 1));
  return all;
}

std::vector<Metric> metrics() {
  auto all = turn_metrics();
  all.insert(
      all.end(),
      {by_block({"tokens_per_second", "1/s", "steps per second, one sample a block"}),
       by_block({"growth", "1", "seconds over those of a step at position `from`, timed before it in the same block"}),
       {"state_bytes", "B", "what the decoders of all heads keep at position n", {}, "bytes", "log10"},
       {"bandwidth_fraction", "1",
        "state_bytes over the median of the times and over the machine's bandwidth, which attnbench machine "
        "measures for memory read and written; above 1 when the state stays in a cache, or where reading alone "
        "is faster"},
       {"row_error", "1", "|step - row of exact attention in double| / |that row|, at position n of head 0"},
       {"rounding_error", "1", "|step - row of causal attention in double| / |that row| of head 0", Better::less,
        "rounding of float", "log10"}});
  return all;
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "decode",
             .summary = "time of one decoding step at position n, paired block by block with softmax over its cache",
             .formula = "seconds per token of all heads; speedup = seconds of softmax / seconds, within a block",
             .reference = "Katharopoulos et al. 2020, arXiv:2006.16236, section 3.4",
             .cost = "taking in n tokens, then blocks x turn for each method and for softmax"},
    .parameters = parameters(),
    .metrics = metrics(),
    .headline = {.metric = "seconds", .label = "seconds per token"},
    .timed = Timing{.make = make_subject, .record = record_steps},
});

}  // namespace
}  // namespace attnbench::decode_experiment
