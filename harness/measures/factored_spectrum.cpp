#include "harness/measures/factored_spectrum.hpp"

#include <algorithm>
#include <cassert>

#include "harness/linalg/factorisations.hpp"
#include "harness/linalg/lapack.hpp"
#include "harness/linalg/products.hpp"

namespace attnbench {

FactoredSpectrum factored_spectrum(const In<double>& L, const In<double>& R, Context& context) {
  assert(L.cols() == R.cols());
  const Index F = L.cols();
  Matrix<double> triangles[2];
  context.for_blocks(2, 1,
                     [&](Context&, Index side, Index) { triangles[side] = triangular_factor(side == 0 ? L : R); });
  Matrix<double> core(F, F);
  multiply_transposed<double>(context, triangles[0], triangles[1], core);
  FactoredSpectrum result{singular_values(std::move(core), context), 0};
  result.sigma.resize(static_cast<size_t>(std::min({F, L.rows(), R.rows()})));
  // Columns of R1 and R2 have the same norms as those of L and R.
  for (Index f = 0; f < F; ++f) result.terms += triangles[0].col(f).norm() * triangles[1].col(f).norm();
  return result;
}

}  // namespace attnbench
