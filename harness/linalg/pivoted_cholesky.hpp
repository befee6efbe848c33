// Randomly pivoted Cholesky (Chen, Epperly, Tropp and Webber 2022, arXiv:2207.06503, algorithm 2.1) of the kernel
// H_ij = exp(x_i.x_j), in double. It works on G_ij = exp(-|x_i - x_j|^2 / 2) = H_ij exp(-(|x_i|^2 + |x_j|^2) / 2),
// whose entries cannot overflow, and gives each pivot the probability that H gives it.
#pragma once

#include <span>
#include <vector>

#include "harness/linalg/context.hpp"

namespace attnbench {

// A row whose residual in G is at most this never becomes a pivot: rounding alone leaves about 1e-15. The larger this
// number, the larger the error that more pivots cannot lower: of 300 normal keys in two dimensions, attention erred by
// 1.2e-3 with 1e-8, 2e-4 with 1e-10 and 4e-5 with 1e-12.
constexpr double smallest_pivot = 1e-12;

// F^T F = G_.S G_SS^-1 G_S. is Nystroem's approximation of G from the rows and columns S. F_.S, in the order of the
// pivots S, is upper triangular, and G_SS = F_.S^T F_.S.
struct PivotedCholesky {
  std::vector<Index> pivots;     // at most as many as there are uniforms
  Matrix<double> factor;         // F, pivots x n
  std::vector<double> residual;  // diag(G - F^T F), n
  std::vector<double> squares;   // |x_j|^2, n; residual_j exp(squares_j) is the residual in H
};

// X is n x d. The next pivot is the first row where the cumulative sum of residual_j exp(|x_j|^2) over the rows with
// residual_j > smallest_pivot exceeds its uniform number (in [0, 1)) times the total. Ends when no such row is left.
// O(n r^2 + n r d) time, O(n (r + d)) memory for r uniforms.
PivotedCholesky pivoted_cholesky(Context& context, const Matrix<double>& X, std::span<const double> uniforms);

}  // namespace attnbench
