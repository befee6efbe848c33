// How far tokens are from being identical, and how attention changes that. methods.md I; Dong et al. 2021,
// arXiv:2103.03404.
#pragma once

#include <optional>
#include <span>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

// res(X) = X - 1 x^T with x the mean of the rows, n x c, which minimises the Frobenius norm. (The paper's x minimises
// its composite norm.) For A with A 1 = 1: res(A X) = (I - 1 1^T / n) A res(X).
Matrix<double> token_residual(const Matrix<double>& X);

// |X|_{1,inf} = sqrt(|X|_1 |X|_inf), the root of the largest column sum of |X_ij| times the largest row sum; at least
// |X|_2. It is not a norm: a column of ones plus a row of ones has 5 although each has 2 (4 x 4). The paper's reference
// code omits the root in one of two places.
double composite_norm(const Matrix<double>& X);

// |res(X)| / |X| in the composite and in the Frobenius norm. 0 for X = 0, whose rows are all the same. At most 1 in the
// Frobenius norm; slightly more is possible in the composite one, which another x minimises.
double relative_residual_composite(const Matrix<double>& X);
double relative_residual_frobenius(const Matrix<double>& X);

// Dobrushin's coefficient 1/2 max_ij |a_i - a_j|_1 over the rows of A; at most 1 for stochastic rows. If all rows have
// the same sum, the largest distance between two rows of A X (any norm) is at most this times that of X, and the
// coefficient of a product is at most the product of its factors' coefficients.
double dobrushin(const Matrix<double>& A);

// The order with which r_0, r_1, ... falls: 1 if every step takes the same share, p if r_{l+1} = c r_l^p for any c.
// With e the last place before r reaches `floor` and s = e / 2 rounded down, it is the 1/s-th power of log(r_e /
// r_{e-s}) / log(r_{e-s} / r_{e-2s}). nullopt if e < 2 or if r does not fall over both halves.
std::optional<double> order_of_convergence(std::span<const double> r, double floor);

}  // namespace attnbench
