// The engine of positive random features: exponentials of a projection. Likhosherstov et al., arXiv:2205.15317, eq. 6,
// and arXiv:2302.00787, eq. 5. W includes any linear transform of x.
//   phi(x)_i = exp(offset_i + w_i.x - |x|^2/2)                    one feature a row w_i of W, or
//   phi(x)   = [the same with w_i; the same with -w_i]            two
// methods.md A1, A3, A5, A6: the offsets contain m^-1/2, the determinant and the quadratic form of omega_i. A11 omits
// the norm factor exp(-|x|^2/2) of queries, or of queries and keys.
#pragma once

#include "approximations/linear/features/random_features.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench {

enum class NormFactor { both, keys, none };

template <class T>
class ExponentialFeatures : public FeatureMap<T> {
 public:
  // W is m x d, offsets m x 1. state: the tensors that recreate this instance.
  ExponentialFeatures(const Matrix<double>& W, const Matrix<double>& offsets, bool both_signs, Tensors state,
                      NormFactor norm_factor = NormFactor::both)
      : W_(W.cast<T>()),
        Wt_(W_.transpose()),
        offsets_(offsets.transpose().template cast<T>()),
        both_signs_(both_signs),
        norm_factor_(norm_factor),
        state_(std::move(state)) {}

  Index features() const override { return (both_signs_ ? 2 : 1) * W_.rows(); }
  Form form() const override { return Form::exponents; }
  void map(Context& context, const In<T>& X, Side side, Index, Out<T> block, std::span<T> log_scale) const override {
    const Index b = X.rows(), m = W_.rows();
    Out<T> left(block.data(), b, m, block.outerStride());
    multiply<T>(context, X, Wt_, left);
    if (has_norm_factor(side))
      half_squared_norms<T>(X, log_scale);
    else
      std::fill(log_scale.begin(), log_scale.end(), T(0));
    for (T& scale : log_scale) scale = -scale;
    for (Index i = 0; i < b; ++i) {
      if (both_signs_) block.row(i).tail(m) = offsets_.row(0) - left.row(i);
      left.row(i) += offsets_.row(0);
    }
  }
  bool differentiable() const override { return true; }
  void pullback(Context& context, const In<T>& X, Side side, Index, const In<T>&, const In<T>& d_block,
                std::span<const T> d_log_scale, Out<T> dX) const override {
    const Index b = X.rows(), m = W_.rows();
    if (both_signs_)
      multiply<T>(context, Matrix<T>(d_block.leftCols(m) - d_block.rightCols(m)), W_, dX);
    else
      multiply<T>(context, d_block, W_, dX);
    if (!has_norm_factor(side)) return;
    for (Index i = 0; i < b; ++i) dX.row(i) -= d_log_scale[static_cast<size_t>(i)] * X.row(i);
  }
  Tensors state() const override { return state_; }

 private:
  bool has_norm_factor(Side side) const {
    return norm_factor_ == NormFactor::both || (norm_factor_ == NormFactor::keys && side == Side::key);
  }

  Matrix<T> W_, Wt_;   // m x d and its transpose, so that each product reads its right operand by rows
  Matrix<T> offsets_;  // 1 x m
  bool both_signs_;
  NormFactor norm_factor_;
  Tensors state_;
};

}  // namespace attnbench
