// How far tokens are from being all the same, and what attention does to that. methods.md I; Dong et al. 2021,
// arXiv:2103.03404.
#pragma once

#include <span>
#include <vector>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

// res(X) = X - 1 x^T with x the mean of the rows, n x c: the x that is best in the Frobenius norm. (The paper's x is
// the best in its composite norm.) For A with A 1 = 1: res(A X) = (I - 1 1^T / n) A res(X).
Matrix<double> token_residual(const Matrix<double>& X);

// |X|_{1,inf} = sqrt(|X|_1 |X|_inf), the largest column sum of |X_ij| times the largest row sum, under a root; at least
// |X|_2. It is no norm: a column of ones plus a row of ones has 5 where each has 2 (4 x 4). The paper's reference code
// leaves the root out in one of two places.
double composite_norm(const Matrix<double>& X);

// |res(X)| / |X| in the composite and in the Frobenius norm. 0 for X = 0, whose rows are all the same.
double relative_residual_composite(const Matrix<double>& X);
double relative_residual_frobenius(const Matrix<double>& X);

// Dobrushin's coefficient 1/2 max_ij |a_i - a_j|_1 over the rows of A; at most 1 for stochastic rows. Where all rows
// sum to the same, the largest distance between two rows of A X (any norm) is at most this times that of X, and that of
// a product is at most the product of its factors'.
double dobrushin(const Matrix<double>& A);

// log(r_{l+1} / r_l) / log(r_l / r_{l-1}), l = 1, 2, ...: 1 for r that falls exponentially, 3 for r that is cubed at
// every step, whatever the constants. Ends before the first r that is not below its predecessor, or not above `floor`.
std::vector<double> orders_of_convergence(std::span<const double> r, double floor);

}  // namespace attnbench
