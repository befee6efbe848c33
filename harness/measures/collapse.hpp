// How far tokens are from being all the same, and what attention does to that. methods.md I; Dong et al. 2021,
// arXiv:2103.03404.
#pragma once

#include <optional>
#include <span>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

// res(X) = X - 1 x^T with x the mean of the rows, n x c: the x that is best in the Frobenius norm. (The paper's x is
// the best in its composite norm.) For A with A 1 = 1: res(A X) = (I - 1 1^T / n) A res(X).
Matrix<double> token_residual(const Matrix<double>& X);

// |X|_{1,inf} = sqrt(|X|_1 |X|_inf), the largest column sum of |X_ij| times the largest row sum, under a root; at least
// |X|_2. It is no norm: a column of ones plus a row of ones has 5 where each has 2 (4 x 4). The paper's reference code
// leaves the root out in one of two places.
double composite_norm(const Matrix<double>& X);

// |res(X)| / |X| in the composite and in the Frobenius norm. 0 for X = 0, whose rows are all the same. At most 1 in the
// Frobenius norm; in the composite one, for which another x is best, it may be a little more.
double relative_residual_composite(const Matrix<double>& X);
double relative_residual_frobenius(const Matrix<double>& X);

// Dobrushin's coefficient 1/2 max_ij |a_i - a_j|_1 over the rows of A; at most 1 for stochastic rows. Where all rows
// sum to the same, the largest distance between two rows of A X (any norm) is at most this times that of X, and that of
// a product is at most the product of its factors'.
double dobrushin(const Matrix<double>& A);

// How fast r_0, r_1, ... falls: 1 when every step takes the same share, p when r_{l+1} = c r_l^p, whatever c. With e
// the last place before r reaches `floor` and s = e / 2 rounded down, the 1/s-th power of log(r_e / r_{e-s}) /
// log(r_{e-s} / r_{e-2s}). Nothing when e < 2 or when r does not fall over both halves.
std::optional<double> order_of_convergence(std::span<const double> r, double floor);

}  // namespace attnbench
