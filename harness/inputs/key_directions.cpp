#include "harness/inputs/key_directions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/errors/error.hpp"
#include "harness/linalg/factorisations.hpp"

namespace attnbench {

// With Q = U_Q R_Q, K = U_K R_K and R_Q R_K^T = U S V^T, the factors are U_Q U S^1/2 and U_K V S^1/2. We compute U_Q U
// S^1/2 as Q R_K^T V S^-1/2, which needs no division by a triangle.
KeyDirections best_directions(const Matrix<double>& Q, const Matrix<double>& K, Index size) {
  const Matrix<double> R_Q = triangular_factor(Q), R_K = triangular_factor(K);
  const Matrix<double> C = R_Q.lazyProduct(R_K.transpose());
  const auto [sigma, V] = right_singular_vectors(C);
  const double rounding =
      sigma[0] * std::numeric_limits<double>::epsilon() * static_cast<double>(std::max(Q.rows(), K.rows()));
  KeyDirections best{Matrix<double>(Q.cols(), size), Matrix<double>(Q.cols(), size)};
  for (Index k = 0; k < size; ++k) {
    const double s = sigma[static_cast<size_t>(k)];
    if (!(s > rounding))
      throw Misuse(
          fmt::format("the logits of this head have rank {}; expected a key size of at most that, given {}", k, size));
    const Eigen::VectorXd right = V.col(k), left = C.lazyProduct(right) / s;
    best.of_queries.col(k) = R_K.transpose().lazyProduct(right) / std::sqrt(s);
    best.of_keys.col(k) = R_Q.transpose().lazyProduct(left) / std::sqrt(s);
  }
  return best;
}

}  // namespace attnbench
