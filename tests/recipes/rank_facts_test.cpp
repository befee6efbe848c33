// Facts that the recipes on rank state beside their numbers: counterexamples, and the rank correlation that they use.
#include <boost/random/normal_distribution.hpp>
#include <cmath>
#include <numbers>

#include "harness/linalg/lapack.hpp"
#include "harness/measures/spectrum.hpp"
#include "harness/random/streams.hpp"
#include "harness/statistics/rank_correlation.hpp"
#include "tests/scores.hpp"

namespace attnbench::rank_facts_test {

namespace {

Index rank_of(const Matrix<double>& A) {
  const auto sigma = singular_values(A);
  return numerical_rank(sigma, rank_tolerance(sigma, A.rows(), A.cols()));
}

Matrix<double> band_of(Matrix<double> A, Index w) {
  for (Index i = 0; i < A.rows(); ++i)
    for (Index j = 0; j < A.cols(); ++j)
      if (std::abs(i - j) > w) A(i, j) = 0;
  return A;
}

}  // namespace

TEST_CASE("the exponential lowers the rank of log(u v^T) from 2 to 1", "[unit]") {
  constexpr Index n = 12;
  Matrix<double> S(n, n);
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j)
      S(i, j) = std::log(1.0 + static_cast<double>(i)) - std::log(3.0 + static_cast<double>(j));
  CHECK(rank_of(S) == 2);
  CHECK(rank_of(S.array().exp().matrix()) == 1);
  Matrix<double> generic = S;  // and raises it of logits that are not of this form
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j) generic(i, j) = std::sin(1.0 + static_cast<double>(i)) * static_cast<double>(j) / 4;
  CHECK(rank_of(generic) == 1);
  CHECK(rank_of(generic.array().exp().matrix()) > 4);
}

// Three diagonals of ones have the eigenvalues 1 + 2 cos(k pi / (n + 1)): one is 0 where n = 2 mod 3, k = 2 (n + 1)
// / 3.
TEST_CASE("a band can lose rank that the whole had: 5 to 4", "[unit]") {
  for (const Index n : {4, 5, 6, 7, 8}) {
    const Matrix<double> ones = Matrix<double>::Ones(n, n);
    CHECK(rank_of(band_of(ones, 1)) == (n % 3 == 2 ? n - 1 : n));  // of rank 1 before: raised
  }
  Matrix<double> whole = band_of(Matrix<double>::Ones(5, 5), 1);
  whole(0, 4) = 1;
  CHECK(rank_of(whole) == 5);
  CHECK(rank_of(band_of(whole, 1)) == 4);
  whole.array().colwise() /= whole.rowwise().sum().array().eval();  // as attention: rows that sum to one
  CHECK(rank_of(whole) == 5);
  CHECK(rank_of(band_of(whole, 1)) == 4);
}

}  // namespace attnbench::rank_facts_test
