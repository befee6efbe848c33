#include "harness/measures/top_singular_values.hpp"

#include <algorithm>
#include <cmath>

#include "harness/linalg/factorisations.hpp"
#include "harness/linalg/products.hpp"

namespace attnbench {

namespace {

// X -= V V^T X.
void project_out(const In<double>& V, Matrix<double>& X, Context& context) {
  if (V.cols() == 0) return;
  Matrix<double> along = Matrix<double>::Zero(V.cols(), X.cols());
  transposed_multiply_add<double>(context, V, X, along);
  along *= -1;
  multiply_add<double>(context, V, along, X);
}

}  // namespace

TopSingularValues top_singular_values(const LinearMap& A, Index k, Index steps, Generator& generator,
                                      Context& context) {
  constexpr Index oversampling = 8;
  const Index n = A.columns, least = std::min(A.rows, n);
  k = std::min(k, least);
  const Index block = std::min(k + oversampling, n), most = std::min(n, steps * block);
  Matrix<double> basis(n, most), images(A.rows, most);  // images = A basis
  Index width = 0;
  Matrix<double> next = standard_normal(generator, n, block);
  while (width < most) {
    if (next.cols() > most - width) next = Matrix<double>(next.leftCols(most - width));
    const Out<double> before(basis.data(), n, width, most);
    // Twice, because the vectors that replace dependent columns may lie along the basis.
    for (int pass = 0; pass < 2; ++pass) {
      project_out(before, next, context);
      orthonormalise(next);
    }
    Matrix<double> image(A.rows, next.cols());
    A.times(context, next, image);
    basis.middleCols(width, next.cols()) = next;
    images.middleCols(width, next.cols()) = image;
    width += next.cols();
    if (width < most) A.transposed_times(context, image, next);
  }

  const auto small = right_singular_vectors(triangular_factor(images));
  const Matrix<double> leading = small.V.leftCols(k);
  TopSingularValues top{{small.sigma.begin(), small.sigma.begin() + k}, {}, Matrix<double>(n, k), {}};
  Matrix<double> image(A.rows, k), back(n, k);
  multiply<double>(context, basis, leading, top.V);
  multiply<double>(context, images, leading, image);
  A.transposed_times(context, image, back);
  const double rounding = static_cast<double>(std::max(A.rows, n)) * std::numeric_limits<double>::epsilon() *
                          (top.sigma.empty() ? 0 : top.sigma.front());
  for (Index i = 0; i < k; ++i) {
    const double sigma = top.sigma[static_cast<size_t>(i)];
    top.curvatures.push_back(back.col(i).squaredNorm());
    // With u = A v / sigma: |A v - sigma u| = 0 and |A^T u - sigma v| = |residual| / sigma.
    const double residual = (back.col(i) - sigma * sigma * top.V.col(i)).norm();
    top.bounds.push_back(rounding +
                         (sigma > 0 ? std::min(residual / sigma, std::sqrt(residual)) : std::sqrt(residual)));
  }
  return top;
}

}  // namespace attnbench
