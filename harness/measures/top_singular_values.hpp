// The largest singular values of an operator that is known only through products with A and A^T.
#pragma once

#include <vector>

#include "harness/measures/linear_map.hpp"
#include "harness/random/streams.hpp"

namespace attnbench {

// The largest singular values, from a block Krylov space of a random start (Musco and Musco 2015, arXiv:1504.05477).
struct TopSingularValues {
  std::vector<double> sigma;   // largest first; except for rounding, none exceeds the true value of the same rank
  std::vector<double> bounds;  // residuals: a singular value (or 0, for a rectangle) lies within this distance of each
  Matrix<double> V;            // their right vectors, n x k, orthonormal
  std::vector<double> curvatures;  // |A^T A v|^2 of each: sigma^4 if v is exact
};
// Computes k of them, or all min(rows, columns) if these are fewer. steps: products with A, each of a block of k + 8
// columns.
TopSingularValues top_singular_values(const LinearMap& A, Index k, Index steps, Generator& generator, Context& context);

}  // namespace attnbench
