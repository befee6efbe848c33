// Keys sampled by the norms of their values, written as a plugin's author would. `mistake` plants one mistake by its
// number; mistakes_test.py names the claim that must find it.
//   o = sum_t w(J_t) v(J_t) / sum_t w(J_t),  w(j) = exp(q.k_j) / (s p_j),  p_j = |v_j| / sum_l |v_l|
#include <cmath>

#include "harness/core/estimates.hpp"
#include "harness/linalg/products.hpp"

namespace attnbench {
namespace {

enum Mistake {
  none = 0,
  no_weight,
  no_number_of_draws,
  no_total,
  five_percent_too_heavy,
  says_uniform,
  says_twice_as_many,
  one_number_for_all,
  antithetic_numbers,
  counts_draws,
  next_key,
  last_key_never,
  squared_norms,
  reads_padding,
  total_of_all_keys,
  says_stratified,
  half_of_keys_twice
};

template <class T>
class Subsampled final : public Approximation<T>, public SampledRows<T> {
 public:
  explicit Subsampled(const Draw& draw) : mistake_(draw.params.integer("mistake")), s_(draw.params.integer("s")) {
    if (const auto* given = draw.injected("u", draw.shape.nq, s_)) {
      u_ = *given;
      return;
    }
    u_.resize(draw.shape.nq, s_);
    Generator generator = draw.streams.stream("subsampled", draw.head, draw.replicate);
    for (Index i = 0; i < u_.size(); ++i) u_.data()[i] = (static_cast<double>(generator() >> 12) + 0.5) * 0x1p-52;
  }

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    std::vector<T> denominators(static_cast<size_t>(out.rows())), log_scale(denominators.size());
    sums(head, mask, 0, context, out, denominators, log_scale);
    for (Index i = 0; i < out.rows(); ++i)
      if (const T sum = denominators[static_cast<size_t>(i)]; sum > 0) out.row(i) /= sum;
  }
  Tensors state() const override { return {{"u", u_}}; }

  SamplingLaw law(const Head<T>& head, Mask mask, Index row) const override {
    const Index seen = mask.visible(row, head.K.rows());
    SamplingLaw law{.p = probabilities(head, mask, row), .samples = s_};
    if (mistake_ == says_uniform) law.p.assign(static_cast<size_t>(seen), 1 / static_cast<double>(seen));
    if (mistake_ == says_twice_as_many) law.samples *= 2;
    if (mistake_ == says_stratified) law.draws = SamplingLaw::Draws::stratified;
    return law;
  }

  void sums(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> numerators, std::span<T> denominators,
            std::span<T> log_scale) const override {
    numerators.setZero();
    for (Index i = 0; i < numerators.rows(); ++i) {
      T& denominator = denominators[static_cast<size_t>(i)];
      T& scale = log_scale[static_cast<size_t>(i)];
      denominator = scale = 0;
      const auto p = probabilities(head, mask, first + i);
      const Index n = std::ssize(p);
      if (n == 0) continue;
      std::vector<Index> keys;
      Matrix<T> weights(1, s_), K(s_, head.K.cols()), V(s_, head.V.cols());
      for (Index t = 0; t < s_; ++t) {
        keys.push_back(drawn(p, first + i, t));
        K.row(t) = head.K.row(keys.back());
        V.row(t) = head.V.row(keys.back());
      }
      multiply_transposed<T>(context, row_block(head.Q, first + i, 1), K, weights);
      for (Index t = 0; t < s_; ++t) {
        double weight = p[static_cast<size_t>(keys[static_cast<size_t>(t)])];
        if (mistake_ == no_weight) weight = 1 / static_cast<double>(n);
        if (mistake_ == no_total) weight *= static_cast<double>(n);
        if (mistake_ == five_percent_too_heavy) weight /= 1.05;
        if (mistake_ != no_number_of_draws) weight *= static_cast<double>(s_);
        weights(0, t) -= static_cast<T>(std::log(weight));
      }
      scale = weights.maxCoeff();
      weights = (weights.array() - scale).exp();
      context.work.exps += static_cast<double>(s_);
      multiply<T>(context, weights, V, row_block(numerators, i, 1));
      denominator = mistake_ == counts_draws ? static_cast<T>(s_) : weights.sum();
    }
  }

 private:
  std::vector<double> probabilities(const Head<T>& head, Mask mask, Index row) const {
    const Index nk = head.K.rows();
    if (mistake_ == reads_padding) mask.keys = -1;
    const Index seen = mask.visible(row, nk);
    std::vector<double> p;
    double total = 0;
    for (Index j = 0; j < (mistake_ == total_of_all_keys ? nk : seen); ++j) {
      const double norm = head.V.row(j).template cast<double>().norm();
      if (j < seen) p.push_back(norm);
      total += norm;
    }
    for (double& x : p) x /= total;
    return p;
  }

  Index drawn(const std::vector<double>& p, Index row, Index t) const {
    double x = u_(row, mistake_ == one_number_for_all ? 0 : t);
    if (mistake_ == antithetic_numbers && t % 2 == 1) x = 1 - u_(row, t - 1);
    const Index n = std::ssize(p);
    double total = 0;
    for (const double weight : p) total += mistake_ == squared_norms ? weight * weight : weight;
    if (mistake_ == squared_norms) x *= total;
    Index key = 0;
    for (double sum = 0; key < n - 1; ++key) {
      const double weight = p[static_cast<size_t>(key)];
      sum += mistake_ == squared_norms ? weight * weight : weight;
      if (sum > x) break;
    }
    if (mistake_ == next_key) key = (key + 1) % n;
    if (mistake_ == last_key_never) key = std::max<Index>(0, std::min(key, n - 2));
    if (mistake_ == half_of_keys_twice && key >= (n + 1) / 2) key -= n / 2;
    return key;
  }

  Index mistake_, s_;
  Matrix<double> u_;
};

const bool registered = add(method<Subsampled>({
    .text = {.name = "subsampled",
             .summary = "softmax over keys sampled by the norms of their values",
             .formula = "o = sum_t w(J_t) v(J_t) / sum_t w(J_t), w(j) = exp(q.k_j) / (s p_j), p_j ~ |v_j|",
             .reference = "Zandieh et al. 2023, arXiv:2302.02451",
             .cost = "O(n s (d + dv)) time",
             .family = "sampling"},
    .parameters = {Parameter::integer("s", 16, "draws of a row", 1, 1 << 20).as_budget(),
                   Parameter::integer("mistake", 0, "one of this file's mistakes", 0, 100).as_published()},
    .claims =
        [](const Params&, const Shape&) {
          return Claims{.row_stochastic = true,
                        .non_negative = true,
                        .causal_exact = true,
                        .linear_in_V = false,
                        .no_attention_matrix = "the values decide which keys are drawn"};
        },
    .memory =
        [](const Params& params, const Shape& shape) {
          return static_cast<double>(params.integer("s") * (shape.d + shape.dv)) * bytes_of(shape.precision);
        },
    .cost =
        [](const Params& params, const Shape& shape) {
          const double pairs = static_cast<double>(params.integer("s") * shape.nq);
          return Work{.flops = 2 * pairs * static_cast<double>(shape.d + shape.dv), .exps = pairs};
        },
}));

}  // namespace
}  // namespace attnbench
