#include "harness/linalg/factorisations.hpp"

#include <algorithm>
#include <cassert>
#include <stdexcept>
#include <string>

#include "harness/errors/error.hpp"
#include "harness/linalg/lapack_status.hpp"
#include "harness/linalg/products.hpp"

namespace attnbench {

namespace {

using Columns = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor>;

}  // namespace

Matrix<double> triangular_factor(const In<double>& X) {
  // LAPACK's routine for a triangle above a panel takes 1.2 times as long as its recursive one for a whole matrix, of
  // which the triangle is an eighth.
  const Index F = X.cols(), panel = std::max<Index>(2048, F);
  const Index block = std::min<Index>(32, F);
  Matrix<double> R = Matrix<double>::Zero(F, F);
  std::vector<double> reflectors(static_cast<size_t>(block * F)), work(static_cast<size_t>(block * F));
  for (Index first = 0; first < X.rows() && F > 0; first += panel) {
    const Index count = std::min(panel, X.rows() - first), height = count + F;
    // Rows of the panel, then R, as columns of a row-major matrix.
    Matrix<double> stacked = transposed<double>(row_block(X, first, count), height);
    stacked.rightCols(F) = R.transpose();
    require(
        LAPACKE_dgeqrt_work(LAPACK_COL_MAJOR, lapack_size(height), lapack_size(F), lapack_size(block), stacked.data(),
                            lapack_size(height), reflectors.data(), lapack_size(block), work.data()),
        "dgeqrt");
    R.triangularView<Eigen::Upper>() = stacked.leftCols(F).transpose();
  }
  for (Index j = 0; j < F; ++j)
    if (R(j, j) > 0) R.row(j).tail(F - j) *= -1;
  return R;
}

void orthonormalise(Matrix<double>& X) {
  assert(X.cols() <= X.rows());
  const lapack_int n = lapack_size(X.rows()), b = lapack_size(X.cols());
  if (b == 0) return;
  Columns Q = X;
  std::vector<double> reflectors(static_cast<size_t>(b));
  require(LAPACKE_dgeqrf(LAPACK_COL_MAJOR, n, b, Q.data(), n, reflectors.data()), "dgeqrf");
  require(LAPACKE_dorgqr(LAPACK_COL_MAJOR, n, b, b, Q.data(), n, reflectors.data()), "dorgqr");
  X = Q;
}

RightSingularVectors right_singular_vectors(const Matrix<double>& X) {
  const lapack_int F = lapack_size(X.cols());
  RightSingularVectors result{std::vector<double>(static_cast<size_t>(F)), Matrix<double>(F, F)};
  if (F == 0) return result;
  // Row-major X is column-major X^T, whose left singular vectors we want. They come column-major, so as rows.
  Matrix<double> overwritten = X, rows(F, F), unused(F, F);
  require(LAPACKE_dgesdd(LAPACK_COL_MAJOR, 'A', F, F, overwritten.data(), F, result.sigma.data(), rows.data(), F,
                         unused.data(), F),
          "dgesdd");
  result.V = rows.transpose();
  return result;
}

Eigenvectors symmetric_eigenvectors(const Matrix<double>& X) {
  assert(X.rows() == X.cols());
  const lapack_int F = lapack_size(X.cols());
  Eigenvectors result{std::vector<double>(static_cast<size_t>(F)), X.transpose()};
  if (F == 0) return result;
  // In column-major order the transposed matrix is X. Its eigenvectors come as columns, so as rows of a row-major
  // matrix.
  require(LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'V', 'L', F, result.V.data(), F, result.values.data()), "dsyevd");
  result.V.transposeInPlace();
  return result;
}

void solve_positive_definite(Matrix<double>& X, std::span<double> x) {
  assert(X.rows() == X.cols() && static_cast<size_t>(X.rows()) == x.size());
  const lapack_int F = lapack_size(X.cols());
  if (F == 0) return;
  const lapack_int status = LAPACKE_dposv(LAPACK_COL_MAJOR, 'L', F, 1, X.data(), F, x.data(), F);
  if (status > 0) throw NumericallyInvalid("a matrix is not positive definite");
  require(status, "dposv");
}

Matrix<double> inverse(Matrix<double> X) {
  assert(X.rows() == X.cols());
  const lapack_int F = lapack_size(X.cols());
  if (F == 0) return X;
  std::vector<lapack_int> pivots(static_cast<size_t>(F));
  // The inverse of the transpose is the transpose of the inverse, so we pass the row-major matrix unchanged.
  const lapack_int status = LAPACKE_dgetrf(LAPACK_COL_MAJOR, F, F, X.data(), F, pivots.data());
  if (status > 0) throw NumericallyInvalid("a singular matrix has no inverse");
  require(status, "dgetrf");
  require(LAPACKE_dgetri(LAPACK_COL_MAJOR, F, X.data(), F, pivots.data()), "dgetri");
  return X;
}

Quadrature bidiagonal_quadrature(std::vector<double> diagonal, std::vector<double> superdiagonal) {
  assert(diagonal.size() == superdiagonal.size() + 1);
  // P^T e_1 results from applying the rotations of the right side to e_1.
  std::vector<double> first(diagonal.size(), 0.0);
  first[0] = 1;
  const auto n = static_cast<lapack_int>(diagonal.size());
  require(LAPACKE_dbdsqr(LAPACK_COL_MAJOR, 'U', n, 1, 0, 0, diagonal.data(), superdiagonal.data(), first.data(), n,
                         nullptr, 1, nullptr, 1),
          "dbdsqr");
  for (double& component : first) component *= component;
  return {std::move(diagonal), std::move(first)};
}

}  // namespace attnbench
