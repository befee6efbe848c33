// Efficient attention. Shen et al., arXiv:1812.01243, section 3.2.
//   out = rho_q(q) (rho_k(k)^T V),  rho_q: softmax over the d channels of a query, rho_k: softmax over the keys of a
//   channel;  A = rho_q(q) rho_k(k)^T,  rank(A) <= d                                                 methods.md C
// Rows sum to one without a normaliser. Adding a constant to one channel of all keys changes nothing. It equals linear
// attention with phi = exp on both sides if and only if the columns of e^k have equal sums; its sums over keys are the
// state of that linear attention. `inputs` selects what is exponentiated: q, k scaled by d^-1/4 as everywhere here, or
// unscaled as in the paper.
#include <cmath>

#include "approximations/linear/linear_cost.hpp"
#include "harness/linalg/exponentials.hpp"
#include "harness/linalg/per_row.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench::efficient_method {
namespace {

constexpr Index query_block = 256;

// phi(x) = exp(x), or exp(d^1/4 x) with unscaled inputs, channel by channel.
template <class T>
class Channels final : public FeatureMap<T> {
 public:
  explicit Channels(const Draw& draw)
      : d_(draw.shape.d),
        factor_(draw.params.text("inputs") == "scaled" ? T(1) : std::pow(static_cast<T>(d_), T(0.25))) {}

  Index features() const override { return d_; }
  Form form() const override { return Form::exponents; }
  void map(Context&, const In<T>& X, Side, Index, Out<T> block, std::span<T> log_scale) const override {
    block = factor_ * X;
    std::fill(log_scale.begin(), log_scale.end(), T(0));
  }
  T factor() const { return factor_; }

 private:
  Index d_;
  T factor_;
};

template <class T>
class Efficient final : public Approximation<T>, public Factored<T>, public Rows<T> {
 public:
  explicit Efficient(const Draw& draw) : channels_(draw) {}

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    const Index keys = mask.visible(0, head.K.rows());
    if (keys == 0) return void(out.setZero());
    const Matrix<T> mixed = mixed_values(head, keys, context);
    context.for_blocks(head.Q.rows(), query_block, [&](Context& single, Index begin, Index count) {
      const Matrix<T> weights = query_weights(row_block(head.Q, begin, count), single);
      multiply<T>(single, weights, mixed, row_block(out, begin, count));
    });
  }

  const Factored<T>* factored() const override { return this; }
  const Rows<T>* rows() const override { return this; }

  void factors(const Head<T>& head, Mask mask, Context& context, Matrix<T>& L, Matrix<T>& R) const override {
    if (mask.causal) throw Skip("efficient attention has no causal form, nor have its factors");
    L = query_weights(head.Q, context);
    R = key_weights(head.K, mask.visible(0, head.K.rows()), context);
  }

  void attention_rows(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> A) const override {
    multiply_transposed<T>(context, query_weights(row_block(head.Q, first, A.rows()), context),
                           key_weights(head.K, mask.visible(0, head.K.rows()), context), A);
  }

 private:
  // rho_k(k)^T V over the first `keys` keys, d x dv.
  Matrix<T> mixed_values(const Head<T>& head, Index keys, Context& context) const {
    LinearState<T> sums = absorb_all<T>(channels_, head, keys, context);
    for (Index c = 0; c < sums.S.rows(); ++c) sums.S.row(c) /= sums.z(c, 0);  // at least 1: the largest key is in it
    return std::move(sums.S);
  }

  // rho_q, b x d.
  Matrix<T> query_weights(const In<T>& Q, Context& context) const {
    Matrix<T> weights = channels_.factor() * Q;
    PerRow<T> row(Q.rows());
    row_maxima<T>(weights, row);
    exponentiate_rows<T>(context, weights, row);
    row_sums<T>(weights, row);
    for (T& sum : row) sum = 1 / sum;
    scale_rows<T>(weights, row);
    return weights;
  }

  // rho_k over the first `keys` keys, nk x d; the other rows are 0.
  Matrix<T> key_weights(const In<T>& K, Index keys, Context& context) const {
    Matrix<T> weights = Matrix<T>::Zero(K.rows(), K.cols());
    const Out<T> seen = row_block(weights, 0, keys);
    row_block(weights, 0, keys) = channels_.factor() * row_block(K, 0, keys);
    PerRow<T> maxima(K.cols(), -std::numeric_limits<T>::infinity()), sums(std::ssize(maxima), T(0));
    raise_to_column_maxima<T>(seen, {}, maxima);
    for (T& maximum : maxima) maximum = -maximum;
    exponentiate<T>(context, seen, {}, maxima, sums);
    for (Index c = 0; c < K.cols() && keys > 0; ++c) weights.col(c) /= sums[c];
    return weights;
  }

  Channels<T> channels_;
};

const bool registered = add(method<Efficient>({
    .text = {.name = "efficient",
             .printed = "Efficient attention",
             .summary = "softmax of queries over channels, of keys over tokens: no normaliser",
             .formula = "A = rho_q(q) rho_k(k)^T, rho_q softmax over a query's channels, rho_k over a channel's keys",
             .reference = "Shen et al. 2018, arXiv:1812.01243, section 3.2",
             .cost = "O(n d dv) time, O(d dv) memory beyond input and output",
             .family = "kernel",
             .aliases = {"efficient-attention"}},
    .parameters = {Parameter::choice("inputs", "scaled", "what is exponentiated: q and k times d^-1/4, or as they are",
                                     {"scaled", "unscaled"})},
    .claims =
        [](const Params&, const Shape& shape) {
          return Claims{.row_stochastic = true,
                        .non_negative = true,
                        .permutation_equivariant = true,
                        .no_form = shape.mask.causal
                                       ? "the softmax of a key channel is over all tokens, later ones included"
                                       : "",
                        .rank_at_most = shape.d};
        },
    .memory = [](const Params&, const Shape& shape) { return linear_memory(shape.d, shape); },
    .cost =
        [](const Params&, const Shape& shape) {
          const double tokens = static_cast<double>(shape.nq + shape.nk), d = static_cast<double>(shape.d);
          return Work{.flops = 2 * tokens * d * static_cast<double>(shape.dv), .exps = tokens * d};
        },
}));

}  // namespace
}  // namespace attnbench::efficient_method
