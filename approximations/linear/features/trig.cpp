// Trigonometric random features for the softmax kernel (FAVOR). Choromanski et al., arXiv:2009.14794, eq. 4.
//   phi(x) = m^-1/2 exp(|x|^2/2) [cos(W x); sin(W x)],  rows of W marginally N(0, I_d)     E[phi(q).phi(k)] = exp(q.k)
//   one row: X = exp((|q|^2+|k|^2)/2) cos(omega.(q-k));  MSE (iid) = exp(s) (1 - exp(-|q-k|^2))^2 / 2m
// s = |q|^2+|k|^2 (methods.md A2).
// 2m features of any sign: a row's normaliser may be zero or negative.
#include <cmath>

#include "approximations/linear/features/random_features.hpp"
#include "harness/linalg/rows.hpp"
#include "harness/theory/summand.hpp"

namespace attnbench {
namespace {

template <class T>
class TrigFeatures final : public FeatureMap<T> {
 public:
  explicit TrigFeatures(const Draw& draw)
      : W_(draw_projection(draw, projection_vectors(draw.params)).cast<T>()),
        norm_(1 / std::sqrt(static_cast<T>(W_.rows()))) {}

  Index features() const override { return 2 * W_.rows(); }
  Form form() const override { return Form::values; }
  void map(Context& context, const In<T>& X, Side, Index, Out<T> block, std::span<T> log_scale) const override {
    const Index b = X.rows(), m = W_.rows();
    Out<T> left(block.data(), b, m, block.outerStride());
    Out<T> right(block.data() + m, b, m, block.outerStride());
    multiply_transposed<T>(context, X, W_, left);
    for (Index i = 0; i < b; ++i) {
      right.row(i).array() = left.row(i).array().sin() * norm_;
      left.row(i).array() = left.row(i).array().cos() * norm_;
    }
    context.work.exps += 2.0 * static_cast<double>(b * m);
    half_squared_norms<T>(X, log_scale);
  }
  Tensors state() const override { return {{"projection", W_.template cast<double>()}}; }

 private:
  Matrix<T> W_;  // m x d
  T norm_;
};

std::optional<KernelTheory> theory(const Params& params, Index, const EnsembleLaw& ensemble, const Head<double>*) {
  return average_of_summands(
      "exp(q.k)", projection_vectors(params), ensemble,
      {.mean = [](const Pair& p,
                  const EnsembleLaw& law) { return std::exp((p.q2 + p.k2) / 2) * law.moment(-p.minus2(), 0); },
       .second =
           [](const Pair& p, const EnsembleLaw& law) {
             return std::exp(p.q2 + p.k2) * (1 + law.moment(-4 * p.minus2(), 0)) / 2;  // cos^2 = (1 + cos of twice) / 2
           },
       .cross =
           [](const Pair& p, const EnsembleLaw& law) {
             return std::exp(p.q2 + p.k2) * (law.pair_moment(-p.minus2(), 1, 0) + law.pair_moment(-p.minus2(), -1, 0)) /
                    2;
           },
       // cosh((q - k_j).(q - k_l))                                                                   methods.md A4
       .correlation =
           [](Context& context, const In<double>& q, const In<double>& J, const In<double>& K, Out<double> block) {
             multiply_transposed<double>(context, Matrix<double>(J.rowwise() - q.row(0)),
                                         Matrix<double>(K.rowwise() - q.row(0)), block);
             block = block.array().cosh();
           }});
}

const bool registered = add(feature_map<TrigFeatures>({
    .text = {.name = "trig",
             .summary = "trigonometric random features (FAVOR), unbiased for exp(q.k), any sign",
             .formula = "phi(x) = m^-1/2 exp(|x|^2/2) [cos(W x); sin(W x)], W m x d",
             .reference = "Choromanski et al. 2020, arXiv:2009.14794, eq. 4",
             .cost = "O(n m d) time, 2m features",
             .family = "random"},
    .parameters = paired_feature_parameters(),
    .features = [](const Params& params, Index) { return 2 * projection_vectors(params); },
    .token_work = [](const Params& params, Index d) { return projection_work(params, d, 2); },  // a sine and a cosine
    .theory = theory,
}));

}  // namespace
}  // namespace attnbench
