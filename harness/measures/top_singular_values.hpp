// The largest singular values of an operator that is known by its products with A and A^T.
#pragma once

#include <vector>

#include "harness/measures/linear_map.hpp"
#include "harness/random/streams.hpp"

namespace attnbench {

// The largest singular values, from a block Krylov space of a random start (Musco and Musco 2015, arXiv:1504.05477).
struct TopSingularValues {
  std::vector<double> sigma;       // largest first; none is above the true one in its place, but for rounding
  std::vector<double> bounds;      // a singular value (or 0, of a rectangle) lies within that of each: the residual
  Matrix<double> V;                // their right vectors, n x k, orthonormal
  std::vector<double> curvatures;  // |A^T A v|^2 of each: sigma^4 where v is exact
};
// k of them, or all min(rows, columns) when they are fewer. steps: products with A, each of a block of k + 8 columns.
TopSingularValues top_singular_values(const LinearMap& A, Index k, Index steps, Generator& generator, Context& context);

}  // namespace attnbench
