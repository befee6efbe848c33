// Polynomial attention. Katharopoulos et al., arXiv:2006.16236, section 3.2.
//   A = D^-1 K,  K_ij = (q_i.k_j)^degree                                                             methods.md C
// degree = 2: [x_l^2, 2^1/2 x_l x_m for l < m], d (d + 1) / 2 features, half of the paper's d^2; cheaper than softmax
// once n exceeds that number. Weights are >= 0, but computed as sums of signed products they may round below 0.
// degree = 1: x itself, d features; weights of either sign.
#include "approximations/linear/linear_attention.hpp"
#include "approximations/linear/linear_cost.hpp"
#include "approximations/linear/symmetric_products.hpp"

namespace attnbench::polynomial_method {
namespace {

Index features_of(Index degree, Index d) { return degree == 1 ? d : symmetric_product_count(d); }

template <class T>
class PolynomialFeatures final : public FeatureMap<T> {
 public:
  explicit PolynomialFeatures(const Draw& draw) : degree_(draw.params.integer("degree")), d_(draw.shape.d) {}

  Index features() const override { return features_of(degree_, d_); }
  Form form() const override { return Form::values; }
  void map(Context&, const In<T>& X, Side, Index, Out<T> block, std::span<T> log_scale) const override {
    if (degree_ == 1)
      block = X;
    else
      symmetric_products<T>(X, 1, block);
    std::fill(log_scale.begin(), log_scale.end(), T(0));
  }
  bool differentiable() const override { return true; }
  void pullback(Context&, const In<T>& X, Side, Index, const In<T>&, const In<T>& d_block, std::span<const T>,
                Out<T> dX) const override {
    if (degree_ == 1) {
      dX = d_block;
    } else {
      dX.setZero();
      pull_back_symmetric_products<T>(X, 1, d_block, dX);
    }
  }

 private:
  Index degree_, d_;
};

template <class T>
class Polynomial final : public LinearAttention<T> {
 public:
  explicit Polynomial(const Draw& draw) : LinearAttention<T>(std::make_unique<PolynomialFeatures<T>>(draw)) {}
};

std::optional<KernelTheory> theory(const Params& params, const Shape&, const Head<double>*) {
  const auto degree = static_cast<double>(params.integer("degree"));
  return KernelTheory{.target = degree == 1 ? "q.k" : "(q.k)^2",
                      .mean = [=](const Pair& p) { return std::pow(p.qk, degree); },
                      .variance = [](const Pair&) { return 0.0; }};
}

const bool registered = add(method<Polynomial>({
    .text = {.name = "polynomial",
             .printed = "Polynomial kernel",
             .summary = "linear attention with the polynomial kernel",
             .formula = "A = D^-1 K, K_ij = (q_i.k_j)^degree",
             .reference = "Katharopoulos et al. 2020, arXiv:2006.16236, section 3.2",
             .cost = "O(n d^degree dv) time, O(d^degree dv) memory beyond input and output",
             .family = "kernel"},
    .parameters = {Parameter::choice("degree", "2", "the power of q.k", {"1", "2"})},
    .claims =
        [](const Params& params, const Shape& shape) {
          return Claims{.permutation_equivariant = true,
                        .causal_exact = true,
                        .rank_at_most = features_of(params.integer("degree"), shape.d)};
        },
    .memory = [](const Params& params,
                 const Shape& shape) { return linear_memory(features_of(params.integer("degree"), shape.d), shape); },
    .cost = [](const Params& params,
               const Shape& shape) { return linear_cost(features_of(params.integer("degree"), shape.d), shape); },
    .theory = theory,
    .caveats =
        [](const Params&, const Shape&) {
          return std::vector<std::string>{
              "small weights are differences of large numbers: in float those below 1e-7 of |q|^degree |k|^degree are "
              "rounding"};
        },
}));

}  // namespace
}  // namespace attnbench::polynomial_method
