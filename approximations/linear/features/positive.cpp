// Positive random features for the softmax kernel (FAVOR+). Choromanski et al., arXiv:2009.14794, Lemma 1.
//   phi(x) = m^-1/2 exp(W x - |x|^2/2),  rows of W marginally N(0, I_d)       E[phi(q).phi(k)] = exp(q.k)
//   one row: X = exp(omega.(q+k) - (|q|^2+|k|^2)/2);  MSE (iid) = exp(2 q.k) (exp(|q+k|^2) - 1) / m      methods.md A1
// O(n m d) time, m features.
#include <cmath>

#include "approximations/linear/features/random_features.hpp"
#include "harness/linalg/rows.hpp"
#include "harness/theory/summand.hpp"

namespace attnbench {
namespace {

template <class T>
class PositiveFeatures final : public FeatureMap<T> {
 public:
  explicit PositiveFeatures(const Draw& draw)
      : W_(draw_projection(draw).cast<T>()), log_norm_(T(0.5) * std::log(static_cast<T>(W_.rows()))) {}

  Index features() const override { return W_.rows(); }
  Form form() const override { return Form::exponents; }
  void map(Context& context, const In<T>& X, Side, Index, Out<T> block, std::span<T> log_scale) const override {
    multiply_transposed<T>(context, X, W_, block);  // b x m
    half_squared_norms<T>(X, log_scale);
    for (Index i = 0; i < X.rows(); ++i) block.row(i).array() -= log_scale[static_cast<size_t>(i)] + log_norm_;
  }
  Tensors state() const override { return {{"projection", W_.template cast<double>()}}; }

 private:
  Matrix<T> W_;  // m x d
  T log_norm_;
};

std::optional<KernelTheory> theory(const Params& params, Index, const SharedLaw& ensemble) {
  return average_of_summands(
      "exp(q.k)", params.integer("m"), ensemble,
      {.mean = [](const Pair& p,
                  const EnsembleLaw& law) { return std::exp(-(p.q2 + p.k2) / 2) * law.moment(p.plus2()); },
       .second = [](const Pair& p,
                    const EnsembleLaw& law) { return std::exp(-(p.q2 + p.k2)) * law.moment(4 * p.plus2()); },
       .cross = [](const Pair& p,
                   const EnsembleLaw& law) { return std::exp(-(p.q2 + p.k2)) * law.pair_moment(p.plus2(), 1); }});
}

const bool registered = add(feature_map<PositiveFeatures>({
    .text = {.name = "positive",
             .summary = "positive random features (FAVOR+), unbiased for exp(q.k)",
             .formula = "phi(x) = m^-1/2 exp(W x - |x|^2/2), W m x d",
             .reference = "Choromanski et al. 2020, arXiv:2009.14794, Lemma 1",
             .cost = "O(n m d) time, m features",
             .family = "random"},
    .parameters = random_feature_parameters(),
    .features = [](const Params& params, Index) { return params.integer("m"); },
    .token_work =
        [](const Params& params, Index d) {
          const double m = static_cast<double>(params.integer("m"));
          return Work{.flops = 2 * m * static_cast<double>(d), .exps = m};
        },
    .non_negative = true,
    .theory = theory,
}));

}  // namespace
}  // namespace attnbench
