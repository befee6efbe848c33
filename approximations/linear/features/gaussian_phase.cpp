// Random Fourier features of the Gaussian kernel with random phases. Rahimi and Recht 2007.
//   phi(x) = (2/m)^1/2 cos(W x + b),  rows of W marginally N(0, I_d), b_i uniform on [0, 2 pi)
//   E[phi(q).phi(k)] = exp(-|q-k|^2/2);  one row: X = cos(omega.(q-k)) + cos(omega.(q+k) + 2 b)
//   MSE (iid) = (1 + exp(-2 |q-k|^2)/2 - exp(-|q-k|^2)) / m                                    methods.md A7
// m features of any sign. At k = q this is not exact, whereas the sine and cosine pair is.
#include <cmath>
#include <numbers>

#include "approximations/linear/features/random_features.hpp"
#include "harness/linalg/rows.hpp"
#include "harness/theory/summand.hpp"

namespace attnbench::gaussian_phase_map {
namespace {

Matrix<double> draw_phases(const Draw& draw, Index m) {
  if (const auto* given = draw.injected("phases", 1, m)) return *given;
  auto generator = draw.streams.stream("phases", draw.shape.d, draw.head, draw.replicate);
  Matrix<double> phases(1, m);
  for (Index i = 0; i < m; ++i)
    phases(0, i) = 2 * std::numbers::pi * std::ldexp(static_cast<double>(generator() >> 11), -53);
  return phases;
}

template <class T>
class PhaseFeatures final : public FeatureMap<T> {
 public:
  explicit PhaseFeatures(const Draw& draw)
      : W_(draw_projection(draw, projection_vectors(draw.params)).cast<T>()),
        phases_(draw_phases(draw, W_.rows()).template cast<T>()),
        norm_(std::sqrt(2 / static_cast<T>(W_.rows()))) {}

  Index features() const override { return W_.rows(); }
  Form form() const override { return Form::values; }
  void map(Context& context, const In<T>& X, Side, Index, Out<T> block, std::span<T> log_scale) const override {
    multiply_transposed<T>(context, X, W_, block);
    for (Index i = 0; i < X.rows(); ++i)
      block.row(i).array() = (block.row(i).array() + phases_.row(0).array()).cos() * norm_;
    context.work.exps += static_cast<double>(block.size());
    std::fill(log_scale.begin(), log_scale.end(), T(0));
  }
  bool differentiable() const override { return true; }
  void pullback(Context& context, const In<T>& X, Side, Index, const In<T>&, const In<T>& d_block, std::span<const T>,
                Out<T> dX) const override {
    Matrix<T> angles(X.rows(), W_.rows());  // recomputed: a cosine does not determine the sign of its sine
    multiply_transposed<T>(context, X, W_, angles);
    for (Index i = 0; i < X.rows(); ++i) {
      auto row = angles.row(i).array();
      row = (row + phases_.row(0).array()).sin() * d_block.row(i).array() * -norm_;
    }
    context.work.exps += static_cast<double>(angles.size());
    multiply<T>(context, angles, W_, dX);
  }
  Tensors state() const override {
    return {{"projection", W_.template cast<double>()}, {"phases", phases_.template cast<double>()}};
  }

 private:
  Matrix<T> W_;       // m x d
  Matrix<T> phases_;  // 1 x m
  T norm_;
};

std::optional<KernelTheory> theory(const Params& params, Index, const EnsembleLaw& ensemble, const Head<double>*) {
  return average_of_summands(
      "exp(-|q-k|^2/2)", projection_vectors(params), ensemble,
      {.mean = [](const Pair& p, const EnsembleLaw& law) { return law.mean_cosine(p, 1, -1); },
       .second = [](const Pair& p, const EnsembleLaw& law) { return 1 + law.mean_cosine(p, 2, -2) / 2; },
       // Phases are independent, so two rows are correlated only through omega.(q-k).
       .cross =
           [](const Pair& p, const EnsembleLaw& law) {
             return (law.pair_moment(-p.minus2(), 1, 0) + law.pair_moment(-p.minus2(), -1, 0)) / 2;
           },
       // cosh(x) + e^x / 2 with x = (q - k_j).(q - k_l): the pair's term plus half of E cos(omega.(k_j - k_l)).
       .correlation =
           [](Context& context, const In<double>& q, const In<double>& J, const In<double>& K, Out<double> block) {
             multiply_transposed<double>(context, Matrix<double>(J.rowwise() - q.row(0)),
                                         Matrix<double>(K.rowwise() - q.row(0)), block);
             block = block.array().cosh() + block.array().exp() / 2;
           }});
}

const bool registered = add(feature_map<PhaseFeatures>({
    .text = {.name = "gaussian-phase",
             .summary = "random Fourier features with random phases, unbiased for the Gaussian kernel, any sign",
             .formula = "phi(x) = (2/m)^1/2 cos(W x + b), W m x d, b uniform on [0, 2 pi)",
             .reference = "Rahimi and Recht 2007, Random features for large-scale kernel machines",
             .cost = "O(n m d) time, m features",
             .family = "trigonometric"},
    .parameters = random_feature_parameters(),
    .features = [](const Params& params, Index) { return projection_vectors(params); },
    .token_work = [](const Params& params, Index d) { return projection_work(params, d, 1); },
    .theory = theory,
}));

}  // namespace
}  // namespace attnbench::gaussian_phase_map
