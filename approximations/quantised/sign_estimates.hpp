// QJL's estimate of vectors from signs of projections and a norm. Zandieh et al. 2024, arXiv:2406.03482,
// Definition 3.1.
#pragma once

#include <cmath>

#include "harness/linalg/products.hpp"

namespace attnbench {

// Adds sqrt(pi/2) |k| / m sum_i w_i sign(w_i.k) for each row k of K (b x d), w_i the rows of W (m x d). sign(0) = 1.
inline void add_sign_estimates(Context& context, const In<double>& K, const Matrix<double>& W,
                               const Out<double>& estimates) {
  Matrix<double> signs(K.rows(), W.rows());
  multiply_transposed<double>(context, K, W, signs);
  const double scale = std::sqrt(M_PI / 2) / static_cast<double>(W.rows());
  for (Index j = 0; j < K.rows(); ++j) {
    const double size = scale * K.row(j).norm();
    for (Index i = 0; i < W.rows(); ++i) signs(j, i) = signs(j, i) < 0 ? -size : size;
  }
  multiply_add<double>(context, signs, W, estimates);
}

}  // namespace attnbench
