// What the recipes on rank say beside their numbers: counterexamples, and the rank correlation that they judge with.
#include <boost/random/normal_distribution.hpp>
#include <cmath>
#include <numbers>

#include "harness/linalg/spectrum.hpp"
#include "harness/measures/spectrum.hpp"
#include "harness/random/streams.hpp"
#include "harness/statistics/rank_correlation.hpp"
#include "tests/scores.hpp"

using namespace attnbench;

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

TEST_CASE("Spearman's correlation is that of ranks, ties shared", "[unit]") {
  const std::vector<double> x{3, 1, 4, 1.5, 9}, decreasing{-3, -1, -4, -1.5, -9};
  std::vector<double> monotone;
  for (const double v : x) monotone.push_back(std::exp(v));
  CHECK(rank_correlation(x, monotone) == 1);
  CHECK(rank_correlation(x, decreasing) == -1);
  // Ranks 0 1.5 1.5 3 and 0 1 2 3: 4.5 / sqrt(4.5 5)
  CHECK(std::abs(rank_correlation(std::vector<double>{1, 2, 2, 5}, std::vector<double>{1, 2, 3, 4}) -
                 4.5 / std::sqrt(4.5 * 5)) < 1e-15);
  CHECK(std::isnan(rank_correlation(std::vector<double>{1, 1}, std::vector<double>{1, 2})));
  CHECK(rank_correlation_interval(0.3, 3, 0.9).low == -1);
  // tanh(atanh(0.5) +- 1.959964 sqrt(1.06 / 47))
  const Interval found = rank_correlation_interval(0.5, 50, 0.95);
  CHECK(std::abs(found.low - std::tanh(0.549306 - 0.294343)) < 1e-5);
  CHECK(std::abs(found.high - std::tanh(0.549306 + 0.294343)) < 1e-5);
}

// Of independent normal pairs, correlation rho: Spearman's is (6 / pi) asin(rho / 2). 20 000 intervals at 5 % in each
// seed: misses are Binomial(20 000, p) with p near 0.05; Fieller's variance is an approximation, so the share is asked
// to lie in [0.04, 0.06], at which a true 5 % errs with probability 1e-9. Power: an interval without the factor 1.06,
// half as wide, misses 33 %.
TEST_CASE("the interval of a rank correlation covers as it says", "[statistics]") {
  constexpr int trials = 20000, points = 30;
  constexpr double rho = 0.5;
  const double truth = 6 / std::numbers::pi * std::asin(rho / 2);
  for (const auto seed : base_seeds) {
    Generator generator = Streams(seed).stream("rank correlation test");
    boost::random::normal_distribution<double> normal;
    int missed = 0, missed_by_half = 0;
    std::vector<double> x(points), y(points);
    for (int t = 0; t < trials; ++t) {
      for (size_t i = 0; i < points; ++i) {
        x[i] = normal(generator);
        y[i] = rho * x[i] + std::sqrt(1 - rho * rho) * normal(generator);
      }
      const double found = rank_correlation(x, y);
      const Interval interval = rank_correlation_interval(found, points, 0.95);
      missed += truth < interval.low || truth > interval.high;
      const double half = (std::atanh(interval.high) - std::atanh(interval.low)) / 4;
      missed_by_half += std::abs(std::atanh(truth) - std::atanh(found)) > half;
    }
    CHECK(missed > 0.04 * trials);
    CHECK(missed < 0.06 * trials);
    CHECK(missed_by_half > 0.2 * trials);
  }
}
