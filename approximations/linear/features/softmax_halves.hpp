// phi(x) = [softmax(x); softmax(-x)], row by row: 2d positive features, of which each half sums to one.
#pragma once

#include "harness/linalg/exp.hpp"

namespace attnbench {

// X: b x d, block: b x 2d.
template <class T>
void softmax_halves(const In<T>& X, Out<T> block) {
  for (Index i = 0; i < X.rows(); ++i) {
    const auto x = X.row(i).array();
    auto up = block.row(i).head(X.cols()).array(), down = block.row(i).tail(X.cols()).array();
    up = exponential(x - x.maxCoeff());
    up /= up.sum();
    down = exponential(x.minCoeff() - x);
    down /= down.sum();
  }
}

// The gradient with respect to X, by d softmax(x) = p (g - sum_l p_l g_l) for the gradient g with respect to p.
template <class T>
void pull_softmax_halves(const In<T>& block, const In<T>& d_block, Out<T> dX) {
  const Index d = dX.cols();
  for (Index i = 0; i < dX.rows(); ++i) {
    const auto up = block.row(i).head(d).array(), down = block.row(i).tail(d).array();
    const auto d_up = d_block.row(i).head(d).array(), d_down = d_block.row(i).tail(d).array();
    const T mean_up = (up * d_up).sum(), mean_down = (down * d_down).sum();
    dX.row(i).array() = up * (d_up - mean_up) - down * (d_down - mean_down);
  }
}

}  // namespace attnbench
