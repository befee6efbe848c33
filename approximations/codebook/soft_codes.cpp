#include "approximations/codebook/soft_codes.hpp"

#include <cmath>

#include "harness/linalg/per_row.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench {

template <class T>
SoftCodes<T>::SoftCodes(const Matrix<double>& codebook, const Matrix<double>* counts, double sigma, CodeWeights weights,
                        const std::string& name)
    : codebook_(codebook.cast<T>()),
      offsets_(1, codebook.rows()),
      precision_(static_cast<T>(1 / (sigma * sigma))),
      weights_(weights),
      state_{{name, codebook_.template cast<double>()}} {
  PerRow<T> half_norms(codebook.rows());
  half_squared_norms<T>(codebook_, half_norms);
  for (Index y = 0; y < codebook.rows(); ++y) {
    const T log_count = counts ? std::log(static_cast<T>((*counts)(y, 0))) : T(0);
    offsets_(0, y) = log_count - precision_ * half_norms[y];
  }
  if (counts) state_["counts"] = *counts;
}

template <class T>
void SoftCodes<T>::map(Context& context, const In<T>& X, Side side, Index, Out<T> block, std::span<T> log_scale) const {
  std::fill(log_scale.begin(), log_scale.end(), T(0));
  if (side == Side::query) {
    multiply_transposed<T>(context, X, codebook_, block);
  } else if (weights_ == CodeWeights::posterior) {
    log_posterior(context, X, block);
  } else {
    log_joint(context, X, block);
    half_squared_norms<T>(X, log_scale);
    for (T& scale : log_scale) scale *= -precision_;
  }
}

template <class T>
void SoftCodes<T>::log_joint(Context& context, const In<T>& X, Out<T> block) const {
  multiply_transposed<T>(context, X, codebook_, block);
  for (Index i = 0; i < block.rows(); ++i)
    block.row(i).array() = block.row(i).array() * precision_ + offsets_.row(0).array();
}

template <class T>
void SoftCodes<T>::log_posterior(Context& context, const In<T>& X, Out<T> block) const {
  log_joint(context, X, block);
  for (Index i = 0; i < block.rows(); ++i) {
    auto u = block.row(i).array();
    u -= u.maxCoeff();
    u -= std::log(u.exp().sum());
  }
  context.work.exps += static_cast<double>(block.size());
}

template <class T>
void SoftCodes<T>::pullback(Context& context, const In<T>& X, Side side, Index, const In<T>&, const In<T>& d_block,
                            std::span<const T> d_log_scale, Out<T> dX) const {
  if (side == Side::query) {
    multiply<T>(context, d_block, codebook_, dX);
    return;
  }
  if (weights_ == CodeWeights::joint) {
    multiply<T>(context, d_block, codebook_, dX);
    for (Index i = 0; i < X.rows(); ++i)
      dX.row(i) = precision_ * (dX.row(i) - d_log_scale[static_cast<size_t>(i)] * X.row(i));
    return;
  }
  Matrix<T> d_exponents(d_block.rows(), d_block.cols());
  log_posterior(context, X, d_exponents);
  for (Index i = 0; i < d_block.rows(); ++i) {
    auto row = d_exponents.row(i).array();
    row = precision_ * (d_block.row(i).array() - row.exp() * d_block.row(i).sum());
  }
  context.work.exps += static_cast<double>(d_block.size());
  multiply<T>(context, d_exponents, codebook_, dX);
}

template class SoftCodes<float>;
template class SoftCodes<double>;

}  // namespace attnbench
