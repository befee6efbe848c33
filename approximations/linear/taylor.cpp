// Attention with the truncated Taylor series of exp(q.k).
// order = 2 (Arora et al., arXiv:2402.18668, section 4):
//   K_ij = 1 + s + s^2/2 >= 1/2,  s = q_i.k_j;  |K - exp(s)| <= exp(max(s, 0)) |s|^3 / 6
//   phi(x) = [1, x, 2^-1/2 [x_l^2, 2^1/2 x_l x_m for l < m]],  (d + 1)(d + 2)/2 features
// order = 1 (Su Jianlin, kexue.fm 7546), on unit vectors, because 1 + s may be negative otherwise:
//   K_ij = 1 + cos of the angle between q_i and k_j >= 0,  phi(x) = [1, x/|x|],  d + 1 features; x/|x| = 0 for x = 0
// methods.md C.
#include "approximations/linear/linear_attention.hpp"
#include "approximations/linear/linear_cost.hpp"
#include "approximations/linear/symmetric_products.hpp"

namespace attnbench::taylor_method {
namespace {

Index features_of(Index order, Index d) { return order == 1 ? 1 + d : 1 + d + symmetric_product_count(d); }

template <class T>
class TaylorFeatures final : public FeatureMap<T> {
 public:
  explicit TaylorFeatures(const Draw& draw) : order_(draw.params.integer("order")), d_(draw.shape.d) {}

  Index features() const override { return features_of(order_, d_); }
  Form form() const override { return Form::values; }
  void map(Context&, const In<T>& X, Side, Index, Out<T> block, std::span<T> log_scale) const override {
    block.col(0).setOnes();
    block.middleCols(1, d_) = X;
    if (order_ == 2)
      symmetric_products<T>(X, root_half,
                            {block.data() + 1 + d_, X.rows(), block.cols() - 1 - d_, block.outerStride()});
    else
      for (Index i = 0; i < X.rows(); ++i)
        if (const T norm = X.row(i).norm(); norm > 0) block.row(i).tail(d_) /= norm;
    std::fill(log_scale.begin(), log_scale.end(), T(0));
  }
  bool differentiable() const override { return true; }
  // Order 1 has no derivative at x = 0; there this returns 0.
  void pullback(Context&, const In<T>& X, Side, Index, const In<T>& block, const In<T>& d_block, std::span<const T>,
                Out<T> dX) const override {
    dX = d_block.middleCols(1, d_);
    if (order_ == 2)
      return pull_back_symmetric_products<T>(
          X, root_half, {d_block.data() + 1 + d_, X.rows(), d_block.cols() - 1 - d_, d_block.outerStride()}, dX);
    for (Index i = 0; i < X.rows(); ++i) {
      const T norm = X.row(i).norm();
      if (norm == 0) {
        dX.row(i).setZero();
        continue;
      }
      const auto unit = block.row(i).tail(d_);
      const T along = (unit.array() * dX.row(i).array()).sum();
      dX.row(i) = (dX.row(i) - along * unit) / norm;
    }
  }

 private:
  static constexpr T root_half = std::numbers::sqrt2_v<T> / 2;

  Index order_, d_;
};

template <class T>
class Taylor final : public LinearAttention<T> {
 public:
  explicit Taylor(const Draw& draw) : LinearAttention<T>(std::make_unique<TaylorFeatures<T>>(draw)) {}
};

std::optional<KernelTheory> theory(const Params& params, const Shape&, const Head<double>*) {
  const bool angle = params.integer("order") == 1;
  return KernelTheory{.target = angle ? "1 + cos of the angle between q and k" : "1 + q.k + (q.k)^2/2",
                      .mean =
                          [=](const Pair& p) {
                            if (!angle) return 1 + p.qk + p.qk * p.qk / 2;
                            const double lengths = std::sqrt(p.q2 * p.k2);
                            return lengths > 0 ? 1 + p.qk / lengths : 1;
                          },
                      .variance = [](const Pair&) { return 0.0; }};
}

const bool registered = add(method<Taylor>({
    .text = {.name = "taylor",
             .printed = "Taylor",
             .summary = "linear attention with the Taylor series of exp(q.k) to order 2, or to order 1 of unit vectors",
             .formula = "A = D^-1 K, K_ij = 1 + q.k + (q.k)^2/2; order 1: 1 + cos of the angle between q and k",
             .reference = "Arora et al. 2024, arXiv:2402.18668 (order 2); Su Jianlin, kexue.fm 7546 (order 1)",
             .cost = "O(n d^order dv) time, O(d^order dv) memory beyond input and output",
             .family = "kernel"},
    .parameters = {Parameter::choice("order", "2", "the last term of the series", {"1", "2"})},
    .claims =
        [](const Params& params, const Shape& shape) {
          const Index order = params.integer("order");
          return Claims{.row_stochastic = order == 2,  // at order 1 a key opposite to the query has weight 0
                        .non_negative = true,
                        .permutation_equivariant = true,
                        .causal_exact = true,
                        .rank_at_most = features_of(order, shape.d)};
        },
    .memory = [](const Params& params,
                 const Shape& shape) { return linear_memory(features_of(params.integer("order"), shape.d), shape); },
    .cost = [](const Params& params,
               const Shape& shape) { return linear_cost(features_of(params.integer("order"), shape.d), shape); },
    .theory = theory,
}));

}  // namespace
}  // namespace attnbench::taylor_method
