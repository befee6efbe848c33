// LAPACK's results come in the order and orientation that the header says.
#include "harness/linalg/factorisations.hpp"

#include "harness/errors/error.hpp"
#include "harness/random/streams.hpp"
#include "tests/catch.hpp"

namespace attnbench::factorisations_test {

namespace {

Matrix<double> gaussian(Index rows, Index columns) {
  auto generator = Streams(7).stream("factorisations test", rows, columns);
  return standard_normal(generator, rows, columns);
}

double largest(const Matrix<double>& X) { return X.size() == 0 ? 0 : X.cwiseAbs().maxCoeff(); }

}  // namespace

TEST_CASE("a symmetric matrix is its eigenvectors times its eigenvalues, smallest first", "[unit]") {
  for (const Index n : {0, 1, 2, 7, 40}) {
    const Matrix<double> half = gaussian(n, n), X = half + half.transpose();
    const auto spectrum = symmetric_eigenvectors(X);
    CHECK(std::is_sorted(spectrum.values.begin(), spectrum.values.end()));
    Matrix<double> scaled = spectrum.V;
    for (Index j = 0; j < n; ++j) scaled.col(j) *= spectrum.values[static_cast<size_t>(j)];
    CHECK(largest(X * spectrum.V - scaled) < 1e-13 * static_cast<double>(n + 1));
    CHECK(largest(spectrum.V.transpose() * spectrum.V - Matrix<double>::Identity(n, n)) < 1e-14 * double(n + 1));
  }
}

TEST_CASE("only the lower triangle of a symmetric matrix is read", "[unit]") {
  const Matrix<double> half = gaussian(5, 5), X = half + half.transpose();
  Matrix<double> lower = X;
  lower.triangularView<Eigen::StrictlyUpper>().setConstant(std::nan(""));
  CHECK(symmetric_eigenvectors(lower).V == symmetric_eigenvectors(X).V);
}

TEST_CASE("an inverse undoes a matrix that is not symmetric, and a singular one has none", "[unit]") {
  for (const Index n : {0, 1, 2, 7, 40}) {
    const Matrix<double> X = gaussian(n, n) + 3 * Matrix<double>::Identity(n, n);
    CHECK(largest(X * inverse(X) - Matrix<double>::Identity(n, n)) < 1e-11);
  }
  CHECK_THROWS_AS(inverse(Matrix<double>::Zero(3, 3)), NumericallyInvalid);
}

}  // namespace attnbench::factorisations_test
