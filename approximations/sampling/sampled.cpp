// Attention to sampled keys: the null of every sampling method. methods.md S.
//   Row i draws keys J_1 ... J_s from a law p over the n keys that it sees, independently of the other rows:
//   o^ = N^ / D^,   N^ = sum_t w(J_t) v(J_t),   D^ = sum_t w(J_t),   w(j) = exp(q.k_j) / (s p_j)
//   uniform     p_j = 1/n
//   value-norm  p_j ~ |v_j|, as KDEformer's (Zandieh et al. 2023, arXiv:2302.02451) without its part 1/n: a value 0 is
//               never drawn, and its weight is missing in D^. Uniform where all values are 0
//   oracle      p_j = a_j, the softmax row: D^ is exact, o^ the mean of the drawn values (SANTA; Lee et al. 2026,
//               arXiv:2605.01910)
//   optimal     p_j ~ a_j |v_j - o|, which makes the error least to first order in 1/s. Oracle where all values are o
// N^ and D^ are unbiased for the keys with p_j > 0 (E N^ = sum exp(q.k_j) v_j), and
//   E |o^ - o|^2 = (1/s) sum_j (a_j^2 / p_j) |v_j - o|^2 to first order in 1/s; exact for the oracle.
// stratified=true draws J_t where the sum of the probabilities passes (t + u_t) / s, replacement=false min(s, n)
// different keys (Floyd's algorithm; uniform only) with the weight n/s in place of 1 / (s p_j).
//
// The numbers u (nq x s, uniform in (0, 1)) are drawn by the constructor. Probabilities are computed in double for both
// scalar types: a sum rounded to float would draw other keys. Uniform and value-norm take O(n s (d + dv)), oracle and
// optimal the n^2 logits: they are bounds and not fast.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "approximations/sparse/gathered_softmax.hpp"
#include "harness/core/estimates.hpp"
#include "harness/random/uniform_numbers.hpp"

namespace attnbench::sampled_method {
namespace {

using Draws = SamplingLaw::Draws;

enum class Law { uniform, value_norm, oracle, optimal };

Law law_of(const Params& params) {
  const std::string& name = params.text("law");
  return name == "uniform"      ? Law::uniform
         : name == "value-norm" ? Law::value_norm
         : name == "oracle"     ? Law::oracle
                                : Law::optimal;
}
bool sees_values(const Params& params) {
  const Law law = law_of(params);
  return law == Law::value_norm || law == Law::optimal;
}
bool computes_all_logits(const Params& params) {
  const Law law = law_of(params);
  return law == Law::oracle || law == Law::optimal;
}

Draws draws_of(const Params& params) {
  if (!params.flag("replacement")) return Draws::distinct;
  return params.flag("stratified") ? Draws::stratified : Draws::independent;
}

void refuse_distinct_draws_by_weight(const Params& params) {
  if (params.flag("replacement") || (params.text("law") == "uniform" && !params.flag("stratified"))) return;
  throw Misuse(params.spec() +
               ": draws without replacement have closed forms for equal probabilities alone; expected law=uniform and "
               "stratified=false beside replacement=false, or replacement=true; for example " +
               params.with("law", "uniform").with("stratified", "false").spec());
}

// The probabilities of one row's keys: weights over their total, and the sums of the weights so far. Without weights
// all keys are alike.
struct RowLaw {
  Index keys = 0;
  std::span<const double> weights = {}, sums = {};

  double probability(Index j) const {
    if (weights.empty()) return 1 / static_cast<double>(keys);
    return weights[static_cast<size_t>(j)] / sums.back();
  }
  // The key at which the sum of the probabilities passes x in (0, 1).
  Index key_at(double x) const {
    if (weights.empty()) return std::min(keys - 1, static_cast<Index>(x * static_cast<double>(keys)));
    const auto passed = std::upper_bound(sums.begin(), sums.end(), x * sums.back()) - sums.begin();
    Index key = std::min<Index>(keys - 1, passed);
    while (key > 0 && weights[static_cast<size_t>(key)] == 0) --key;  // x times the total was rounded up to the total
    return key;
  }
};

// The laws of one row after another of a head, over keys [0, keys).
template <class T>
class RowLaws {
 public:
  struct Scratch {
    Matrix<double> logits, output;
    std::vector<double> weights, sums;
  };

  RowLaws(Law law, const Head<T>& head, Index keys, Context& context) : law_(law) {
    if (law == Law::uniform) return;
    const auto V = row_block(head.V, 0, keys);
    if (law == Law::value_norm) {
      weights_.reserve(static_cast<size_t>(keys));
      for (Index j = 0; j < keys; ++j) weights_.push_back(V.row(j).template cast<double>().stableNorm());
      sums_.resize(weights_.size());
      std::partial_sum(weights_.begin(), weights_.end(), sums_.begin());
      context.work.flops += 2 * static_cast<double>(V.size());
      return;
    }
    K_ = row_block(head.K, 0, keys).template cast<double>();
    if (law == Law::optimal) V_ = V.template cast<double>();
  }

  // The law of a query that sees the first `seen` keys. It refers to this and to the scratch.
  RowLaw of_row(Context& context, const In<T>& query, Index seen, Scratch& scratch) const {
    const auto n = static_cast<size_t>(seen);
    if (seen == 0 || law_ == Law::uniform) return {seen};
    if (law_ == Law::value_norm) {
      if (sums_[n - 1] == 0) return {seen};
      return {seen, std::span(weights_).first(n), std::span(sums_).first(n)};
    }
    const Matrix<double> q = query.template cast<double>();
    scratch.logits.resize(1, seen);
    Matrix<double>& a = scratch.logits;
    multiply_transposed<double>(context, q, row_block(K_, 0, seen), a);
    softmax_within<double>(context, a, 0, 0, seen);
    scratch.weights.assign(a.data(), a.data() + seen);
    scratch.sums.resize(n);
    if (law_ == Law::optimal) weigh_by_distance(context, a, scratch);
    std::partial_sum(scratch.weights.begin(), scratch.weights.end(), scratch.sums.begin());
    return {seen, scratch.weights, scratch.sums};
  }

 private:
  // a_j |v_j - o|, or a_j where that is 0 for all keys: every choice gives o.
  void weigh_by_distance(Context& context, const Matrix<double>& a, Scratch& scratch) const {
    const auto V = row_block(V_, 0, a.cols());
    scratch.output.resize(1, V.cols());
    multiply<double>(context, a, V, scratch.output);
    double total = 0;
    for (Index j = 0; j < V.rows(); ++j)
      total += scratch.weights[static_cast<size_t>(j)] = a(0, j) * (V.row(j) - scratch.output.row(0)).norm();
    if (total == 0) scratch.weights.assign(a.data(), a.data() + a.cols());
    context.work.flops += 3 * static_cast<double>(V.size());
  }

  Law law_;
  std::vector<double> weights_, sums_;  // value-norm
  Matrix<double> K_, V_;                // oracle and optimal
};

// The keys that rows draw by the numbers u, some of them several times, with the weights 1 / (s p_j).
template <class T>
class DrawnKeys final : public KeyChoice<T> {
 public:
  DrawnKeys(Law law, Draws draws, Index samples, const Matrix<double>& u, const Head<T>& head, Mask mask,
            Context& context)
      : draws_(draws),
        samples_(samples),
        u_(u),
        head_(head),
        laws_(law, head, head.Q.rows() > 0 ? mask.visible(head.Q.rows() - 1, head.K.rows()) : 0, context) {}

  void choose(Context& context, Mask mask, Index first, std::span<WeighedKeys<T>> rows,
              std::span<double>) const override {
    typename RowLaws<T>::Scratch scratch;
    std::vector<bool> drawn(draws_ == Draws::distinct ? static_cast<size_t>(head_.K.rows()) : 0, false);
    for (size_t i = 0; i < rows.size(); ++i) {
      const Index row = first + static_cast<Index>(i), seen = mask.visible(row, head_.K.rows());
      if (seen == 0) continue;
      const RowLaw law = laws_.of_row(context, row_block(head_.Q, row, 1), seen, scratch);
      auto& keys = rows[i].keys;
      if (draws_ == Draws::distinct)
        draw_distinct(row, seen, drawn, keys);
      else
        draw(row, law, keys);
      weigh(law, rows[i]);
    }
  }

 private:
  void draw(Index row, const RowLaw& law, std::vector<Index>& keys) const {
    const auto s = static_cast<double>(samples_);
    keys.reserve(static_cast<size_t>(samples_));
    for (Index t = 0; t < samples_; ++t) {
      const double u = u_(row, t);
      keys.push_back(law.key_at(draws_ == Draws::stratified ? (static_cast<double>(t) + u) / s : u));
    }
  }
  // Floyd's algorithm: the set is that of a shuffle, in as many steps as it has keys. `drawn` is left false.
  void draw_distinct(Index row, Index n, std::vector<bool>& drawn, std::vector<Index>& keys) const {
    const Index s = std::min(samples_, n);
    for (Index last = n - s; last < n; ++last) {
      Index key = std::min(last, static_cast<Index>(u_(row, last - (n - s)) * static_cast<double>(last + 1)));
      if (drawn[static_cast<size_t>(key)]) key = last;
      drawn[static_cast<size_t>(key)] = true;
      keys.push_back(key);
    }
    for (const Index key : keys) drawn[static_cast<size_t>(key)] = false;
  }
  static void weigh(const RowLaw& law, WeighedKeys<T>& row) {
    const auto drawn = static_cast<double>(row.keys.size());
    const auto log_weight = [&](Index key) { return static_cast<T>(-std::log(drawn * law.probability(key))); };
    if (law.weights.empty()) {
      row.log_weights.assign(row.keys.size(), log_weight(0));
      return;
    }
    row.log_weights.reserve(row.keys.size());
    for (const Index key : row.keys) row.log_weights.push_back(log_weight(key));
  }

  Draws draws_;
  Index samples_;
  const Matrix<double>& u_;
  Head<T> head_;
  RowLaws<T> laws_;
};

template <class T>
class Sampled final : public GatheredSoftmax<T>, public Rows<T>, public SampledRows<T> {
 public:
  explicit Sampled(const Draw& draw)
      : law_(law_of(draw.params)), draws_(draws_of(draw.params)), samples_(draw.params.integer("s")) {
    const Index columns = draws_ == Draws::distinct ? std::min(samples_, draw.shape.nk) : samples_;
    if (const auto* given = draw.injected("u", draw.shape.nq, columns)) {
      u_ = *given;
      return;
    }
    Generator generator = draw.streams.stream("sampled", draw.head, draw.replicate);
    u_ = uniform_numbers(generator, draw.shape.nq, columns);
  }

  Tensors state() const override { return {{"u", u_}}; }
  const Rows<T>* rows() const override { return this; }

  void attention_rows(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> A) const override {
    this->attention(head, mask, first, context, A);
  }
  void sums(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> numerators, std::span<T> denominators,
            std::span<T> log_scale) const override {
    this->add_up(head, mask, first, context, numerators, denominators, log_scale);
  }

  SamplingLaw law(const Head<T>& head, Mask mask, Index row) const override {
    const Index seen = mask.visible(row, head.K.rows());
    Context context;
    const RowLaws<T> laws(law_, head, seen, context);
    typename RowLaws<T>::Scratch scratch;
    const RowLaw of_row = laws.of_row(context, row_block(head.Q, row, 1), seen, scratch);
    SamplingLaw law{.samples = samples_, .draws = draws_};
    for (Index j = 0; j < seen; ++j) law.p.push_back(of_row.probability(j));
    return law;
  }

 private:
  std::unique_ptr<KeyChoice<T>> choice(const Head<T>& head, Mask mask, Context& context) const override {
    return std::make_unique<DrawnKeys<T>>(law_, draws_, samples_, u_, head, mask, context);
  }

  Law law_;
  Draws draws_;
  Index samples_;
  Matrix<double> u_;  // nq x s
};

const bool registered = add(method<Sampled>({
    .text = {.name = "sampled",
             .summary = "softmax over sampled keys, weighed by how probable each was: the null of sampling methods",
             .formula = "o_i = sum_t w(J_t) v(J_t) / sum_t w(J_t), w(j) = exp(q_i.k_j) / (s p_j), J_1 ... J_s drawn "
                        "from p",
             .reference = "Lee et al. 2026, arXiv:2605.01910, for the oracle and its strata; Zandieh et al. 2023, "
                          "arXiv:2302.02451, for value norms",
             .cost = "O(n s (d + dv)) time (uniform, value-norm), O(n^2 (d + dv)) (oracle, optimal); u is n s",
             .family = "sampling",
             .departure = "KDEformer adds 1/n to the probabilities by value norms; here a value 0 is never drawn"},
    .parameters = {Parameter::choice("law", "uniform",
                                     "probabilities of keys: equal, by the norm of values, by softmax weights, or by "
                                     "weights times the distance of the value from the output",
                                     {"uniform", "value-norm", "oracle", "optimal"}),
                   Parameter::integer("s", 64, "keys that a row draws", 1, 1 << 20).as_budget(),
                   Parameter::flag("replacement", true, "a key may be drawn again; false: law=uniform alone"),
                   Parameter::flag("stratified", false, "one draw from each of s parts of equal probability")},
    .claims =
        [](const Params& params, const Shape&) {
          const bool values = sees_values(params);
          return Claims{.row_stochastic = true,
                        .non_negative = true,
                        .causal_exact = true,
                        .linear_in_V = !values,
                        .scales_with_V = values,
                        .no_attention_matrix = values ? "the values decide which keys are drawn" : "",
                        .exact_when = "law=uniform,stratified=false,replacement=false,s=1000000"};
        },
    .memory =
        [](const Params& params, const Shape& shape) {
          const auto nk = static_cast<double>(shape.nk), channels = static_cast<double>(shape.d + shape.dv);
          const double drawn = memory_of_gathered(static_cast<double>(params.integer("s")), true, shape);
          // K and V in double, and the weights of one row with their sums.
          if (computes_all_logits(params)) return 8 * nk * (channels + 3) + drawn;
          return (sees_values(params) ? 16 * nk : 0) + drawn;
        },
    .cost =
        [](const Params& params, const Shape& shape) {
          const auto n = static_cast<double>(shape.nq), nk = static_cast<double>(shape.nk);
          const auto d = static_cast<double>(shape.d), dv = static_cast<double>(shape.dv);
          auto s = static_cast<double>(params.integer("s"));
          if (!params.flag("replacement")) s = std::min(s, nk);
          Work work{.flops = 2 * n * s * (d + dv), .exps = n * s};
          if (params.text("law") == "value-norm") work.flops += 2 * nk * dv;
          if (!computes_all_logits(params)) return work;
          const double pairs = n * nk * (shape.mask.causal ? 0.5 : 1.0);
          return work += {.flops = pairs * (2 * d + (sees_values(params) ? 5 * dv : 0)), .exps = pairs};
        },
    .check = refuse_distinct_draws_by_weight,
}));

}  // namespace
}  // namespace attnbench::sampled_method
