// Sine and cosine of a projection, for trig and gaussian, which differ only in the norm factor exp(|x|^2/2).
//   phi(x) = m^-1/2 [exp(|x|^2/2)] [cos(W x); sin(W x)],     X = [exp((|q|^2+|k|^2)/2)] cos(omega.(q-k))
// methods.md A2, A7.
#pragma once

#include <cmath>

#include "approximations/linear/features/random_features.hpp"
#include "harness/linalg/rows.hpp"
#include "harness/linalg/sincos.hpp"
#include "harness/theory/summand.hpp"

namespace attnbench {

template <class T>
class TrigonometricFeatures : public FeatureMap<T> {
 public:
  TrigonometricFeatures(const Draw& draw, bool norm_factor)
      : W_(draw_projection(draw, projection_vectors(draw.params)).cast<T>()),
        Wt_(W_.transpose()),
        norm_(1 / std::sqrt(static_cast<T>(W_.rows()))),
        norm_factor_(norm_factor) {}

  Index features() const override { return 2 * W_.rows(); }
  Form form() const override { return Form::values; }
  void map(Context& context, const In<T>& X, Side, Index, Out<T> block, std::span<T> log_scale) const override {
    const Index b = X.rows(), m = W_.rows();
    Out<T> left(block.data(), b, m, block.outerStride());
    Out<T> right(block.data() + m, b, m, block.outerStride());
    multiply<T>(context, X, Wt_, left);
    cosines_and_sines<T>(context, left, right, norm_);
    if (norm_factor_)
      half_squared_norms<T>(X, log_scale);
    else
      std::fill(log_scale.begin(), log_scale.end(), T(0));
  }
  bool differentiable() const override { return true; }
  void pullback(Context& context, const In<T>& X, Side, Index, const In<T>& block, const In<T>& d_block,
                std::span<const T> d_log_scale, Out<T> dX) const override {
    const Index b = X.rows(), m = W_.rows();
    Matrix<T> d_angles(b, m);  // needs no new sines: cos and sin are each other's derivatives, up to sign
    for (Index i = 0; i < b; ++i)
      d_angles.row(i).array() = d_block.row(i).tail(m).array() * block.row(i).head(m).array() -
                                d_block.row(i).head(m).array() * block.row(i).tail(m).array();
    multiply<T>(context, d_angles, W_, dX);
    if (!norm_factor_) return;
    for (Index i = 0; i < b; ++i) dX.row(i) += d_log_scale[static_cast<size_t>(i)] * X.row(i);
  }
  Tensors state() const override { return {{"projection", W_.template cast<double>()}}; }

 private:
  Matrix<T> W_, Wt_;  // m x d and its transpose, so that each product reads its right operand by rows
  T norm_;
  bool norm_factor_;
};

inline std::optional<KernelTheory> trigonometric_theory(std::string target, const Params& params,
                                                        const EnsembleLaw& ensemble, bool norm_factor) {
  // The norm factor in a summand's moment of order `power`.
  const auto factor = [=](const Pair& p, int power) { return norm_factor ? std::exp(power * (p.q2 + p.k2) / 2) : 1.0; };
  return average_of_summands(
      std::move(target), projection_vectors(params), ensemble,
      {.mean = [=](const Pair& p, const EnsembleLaw& law) { return factor(p, 1) * law.mean_cosine(p, 1, -1); },
       .second =
           [=](const Pair& p, const EnsembleLaw& law) {
             return factor(p, 2) * (1 + law.mean_cosine(p, 2, -2)) / 2;  // cos^2 = (1 + cos of twice) / 2
           },
       .cross =
           [=](const Pair& p, const EnsembleLaw& law) {
             return factor(p, 2) * (law.pair_moment(-p.minus2(), 1, 0) + law.pair_moment(-p.minus2(), -1, 0)) / 2;
           },
       // cosh((q - k_j).(q - k_l))                                                                   methods.md A4
       .correlation =
           [](Context& context, const In<double>& q, const In<double>& J, const In<double>& K, Out<double> block) {
             multiply_transposed<double>(context, Matrix<double>(J.rowwise() - q.row(0)),
                                         Matrix<double>(K.rowwise() - q.row(0)), block);
             block = block.array().cosh();
           }});
}

}  // namespace attnbench
