// Spectra of matrices that are not formed: from factors, and from products with random vectors. Against dense singular
// values, with the errors that each states.
//
// Deterministic tests hold to bounds on rounding. Coverage: 200 repetitions of each 95 % interval; fewer hits than a
// binomial of 0.95 has with probability 1e-6 over the family are red, and so must planted bugs be.
#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <limits>

#include "harness/linalg/factorisations.hpp"
#include "harness/linalg/lapack.hpp"
#include "harness/measures/factored_spectrum.hpp"
#include "harness/measures/randomised_spectrum.hpp"
#include "harness/measures/spectrum.hpp"
#include "tests/catch.hpp"

namespace attnbench::spectra_test {

namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();

Generator generator_for(const std::string& name, Index repetition = 0) {
  return Streams(1).stream("spectra", name, repetition);
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double worst = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  return worst;
}

// A row-stochastic matrix with logits N(0, s^2); causal: row i over the first i + 1 columns.
Matrix<double> attention(Index rows, Index columns, double s, bool causal) {
  auto generator = generator_for("attention");
  Matrix<double> A = (s * standard_normal(generator, rows, columns)).array().exp();
  if (causal) A = A.triangularView<Eigen::Lower>();
  A.array().colwise() /= A.rowwise().sum().array();
  return A;
}

// U diag(sigma) V^T with sigma_i = ratio^i.
Matrix<double> geometric(Index n, double ratio) {
  auto generator = generator_for("geometric");
  Matrix<double> U = haar_orthogonal(generator, n);
  for (Index i = 0; i < n; ++i) U.col(i) *= std::pow(ratio, static_cast<double>(i));
  return U * haar_orthogonal(generator, n).transpose();
}

}  // namespace

TEST_CASE("the triangular factor has the Gram matrix of what it is of, at every edge of its panels", "[unit]") {
  auto generator = generator_for("triangular");
  for (const Index n : {1, 5, 2047, 2048, 2049, 4097})
    for (const Index F : {1, 7, 40}) {
      CAPTURE(n, F);
      const Matrix<double> X = standard_normal(generator, n, F), R = triangular_factor(X);
      CHECK(R.isUpperTriangular(0));
      CHECK((R.diagonal().array() <= 0).all());
      const Matrix<double> gram = X.transpose() * X;
      const double rounding = static_cast<double>(n + F) * epsilon * gram.cwiseAbs().maxCoeff();
      CHECK((R.transpose() * R - gram).cwiseAbs().maxCoeff() <= rounding);
    }
  CHECK(triangular_factor(Matrix<double>(0, 3)).isZero(0));
}

TEST_CASE("an orthonormal basis holds its columns, dependent or not", "[unit]") {
  auto generator = generator_for("basis");
  for (const Index n : {1, 6, 50}) {
    const Matrix<double> X = standard_normal(generator, n, std::min<Index>(n, 6));
    Matrix<double> Q = X, twice(n, X.cols());
    orthonormalise(Q);
    CHECK((Q.transpose() * Q).isIdentity(100 * epsilon));
    CHECK((Q * (Q.transpose() * X) - X).cwiseAbs().maxCoeff() <= 100 * epsilon);
    twice.colwise() = X.col(0);
    orthonormalise(twice);
    CHECK((twice.transpose() * twice).isIdentity(100 * epsilon));
  }
}

TEST_CASE("the quadrature of a bidiagonal matrix B has the first two moments of e1 under B^T B", "[unit]") {
  const std::vector<double> diagonal = {0.5, 2, 1e-9, 0.25}, above = {1.5, 0.125, 3};
  const auto [nodes, weights] = bidiagonal_quadrature(diagonal, above);
  double total = 0, first = 0, second = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    total += weights[i];
    first += weights[i] * nodes[i] * nodes[i];
    second += weights[i] * std::pow(nodes[i], 4);
  }
  CHECK(std::abs(total - 1) <= 16 * epsilon);
  CHECK(std::abs(first - 0.25) <= 16 * epsilon);                     // a1^2
  CHECK(std::abs(second - (0.0625 + 0.25 * 2.25)) <= 64 * epsilon);  // a1^4 + a1^2 b1^2
}

TEST_CASE("factors have the singular values, the Frobenius norm and the trace of their product", "[unit]") {
  struct Size {
    Index nq, nk, F;
  };
  auto generator = generator_for("factors");
  Context context(2);
  for (const auto& [nq, nk, F] : {Size{1, 1, 1}, {40, 40, 7}, {30, 90, 12}, {90, 30, 30}, {1500, 300, 5}, {8, 8, 20}}) {
    CAPTURE(nq, nk, F);
    const Matrix<double> L = standard_normal(generator, nq, F), R = standard_normal(generator, nk, F);
    const Matrix<double> A = L * R.transpose();
    const auto spectrum = factored_spectrum(L, R, context);
    const auto dense = singular_values(A);
    REQUIRE(std::ssize(spectrum.sigma) == std::min({nq, nk, F}));
    CHECK(largest_difference(spectrum.sigma, dense) <= 1e-12 * dense.front());
    for (size_t i = spectrum.sigma.size(); i < dense.size(); ++i) CHECK(dense[i] <= 1e-12 * dense.front());
    CHECK(spectrum.terms >= dense.front());
    double squares = 0;
    for (const double s : spectrum.sigma) squares += s * s;
    CHECK(std::abs(squares - (L.transpose() * L * (R.transpose() * R)).trace()) <= 1e-12 * squares);
    if (nq == nk)
      CHECK(std::abs(L.cwiseProduct(R).sum() - A.trace()) <= 1e-12 * std::sqrt(squares * static_cast<double>(nq)));
  }
}

TEST_CASE("what factors that cancel lose is what their terms say", "[unit]") {
  auto generator = generator_for("cancelling");
  // A = (l + 1e8 c) r^T - 1e8 c r^T: terms of 1e8 beside a sum of one.
  const Matrix<double> l = standard_normal(generator, 60, 1), c = standard_normal(generator, 60, 1),
                       r = standard_normal(generator, 50, 1);
  Matrix<double> L(60, 2), R(50, 2);
  L << l + 1e8 * c, -1e8 * c;
  R << r, r;
  Context context;
  const auto spectrum = factored_spectrum(L, R, context);
  const double error = std::abs(spectrum.sigma[0] - l.norm() * r.norm());
  CHECK(spectrum.terms > 1e7 * spectrum.sigma[0]);
  CHECK(error <= 8 * epsilon * spectrum.terms);
  CHECK(error > 1e3 * epsilon * spectrum.sigma[0]);  // and not what a rounding floor of sigma_1 alone would say
}

TEST_CASE("a matrix of rank one has its singular values as soon as any other", "[unit]") {
  // Its bidiagonal form ends in numbers below 1e-308 at every scale of the matrix.
  for (const double entry : {1.0 / 300, 1e-290, 1e290}) {
    const auto sigma = singular_values(Matrix<double>::Constant(300, 300, entry));
    CHECK(std::abs(sigma[0] / (300 * entry) - 1) <= 300 * epsilon);
    CHECK(sigma[1] <= 300 * epsilon * sigma[0]);
  }
}

TEST_CASE("the largest singular values lie within their bounds of true ones, and not above them", "[unit]") {
  Context context;
  for (const Matrix<double>& A : {attention(90, 90, 1, false), attention(90, 90, 1, true), attention(40, 110, 2, false),
                                  geometric(60, 0.7), Matrix<double>(Matrix<double>::Zero(5, 9)),
                                  Matrix<double>(Matrix<double>::Constant(20, 20, 0.05)), attention(1, 1, 1, false)}) {
    CAPTURE(A.rows(), A.cols());
    const auto dense = singular_values(A);
    for (const Index k : {1, 5, 200})
      for (const Index steps : {1, 3}) {
        CAPTURE(k, steps);
        auto generator = generator_for("top");
        const auto top = top_singular_values(map_of(A), k, steps, generator, context);
        REQUIRE(std::ssize(top.sigma) == std::min<Index>(k, std::min(A.rows(), A.cols())));
        const double rounding = 200 * epsilon * dense.front();
        CHECK((top.V.transpose() * top.V).isIdentity(1e-12));
        for (size_t i = 0; i < top.sigma.size(); ++i) {
          CAPTURE(i, top.sigma[i], dense[i], top.bounds[i]);
          CHECK(top.sigma[i] <= dense[i] + rounding);
          double nearest = A.rows() == A.cols() ? std::numeric_limits<double>::infinity() : top.sigma[i];
          for (const double s : dense) nearest = std::min(nearest, std::abs(s - top.sigma[i]));
          CHECK(nearest <= top.bounds[i] + rounding);
        }
        if (steps * std::min<Index>(std::ssize(top.sigma) + 8, A.cols()) >= A.cols())
          CHECK(largest_difference(top.sigma, dense) <= rounding);  // the space is all there is
      }
  }
}

namespace {

struct Truth {
  double trace_norm, participation_ratio, effective_rank, effective_rank_squared;
  explicit Truth(const std::vector<double>& sigma)
      : trace_norm(0),
        participation_ratio(attnbench::participation_ratio(sigma)),
        effective_rank(attnbench::effective_rank(sigma)),
        effective_rank_squared(attnbench::effective_rank(sigma, 2)) {
    for (const double s : sigma) trace_norm += s;
  }
};

SpectrumEstimate estimated(const LinearMap& map, Matrix<double> probes, Index repetition, Index k = 4) {
  Context context;
  auto start = generator_for("start", repetition);
  const auto top = top_singular_values(map, k, 2, start, context);
  return estimate_spectrum(map, top, probes, 0.05, context);
}

}  // namespace

TEST_CASE("probes that span everything equally give the traces themselves, deflated or not", "[unit]") {
  // For every deflation, the mean over z = sqrt(n) e_j is the trace to within half of a bracket, which is at most half
  // of a standard error: t-intervals are four of these wide.
  for (const Matrix<double>& A : {attention(40, 40, 1, false), attention(40, 40, 1, true), attention(50, 30, 2, false),
                                  attention(30, 50, 2, false), geometric(30, 0.8)})
    for (const Index k : {1, 6}) {
      CAPTURE(A.rows(), A.cols(), k);
      const Truth truth(singular_values(A));
      const Matrix<double> all =
          std::sqrt(static_cast<double>(A.cols())) * Matrix<double>::Identity(A.cols(), A.cols());
      const auto estimate = estimated(map_of(A), all, 0, k);
      const auto near = [&](const Bracketed& b, double value) {
        CAPTURE(b.value, value, b.interval.low, b.interval.high);
        CHECK(std::abs(b.value - value) <= 0.07 * (b.interval.high - b.interval.low) + 1e-9 * value);
      };
      near(estimate.trace_norm, truth.trace_norm);
      near(estimate.participation_ratio, truth.participation_ratio);
      near(estimate.effective_rank, truth.effective_rank);
      near(estimate.effective_rank_squared, truth.effective_rank_squared);
    }
}

TEST_CASE("matrices of rank 0, 1 and n have the estimates that are known", "[unit]") {
  auto generator = generator_for("signs");
  // With all singular vectors among the top ones nothing is left to the probes.
  const auto of = [&](const Matrix<double>& A) {
    return estimated(map_of(A), random_signs(generator, A.cols(), 8), 0, A.cols());
  };
  const auto zero = of(Matrix<double>::Zero(12, 12));
  CHECK((zero.trace_norm.value == 0 && zero.effective_rank.value == 0 && zero.participation_ratio.value == 0));
  const auto one = of(Matrix<double>::Constant(30, 30, 1.0 / 30));
  for (const double rank : {one.trace_norm.value, one.effective_rank.value, one.effective_rank.interval.high,
                            one.participation_ratio.value})
    CHECK(std::abs(rank - 1) <= 1e-9);
  const auto identity = of(Matrix<double>::Identity(30, 30));
  for (const double rank : {identity.trace_norm.value, identity.effective_rank.value,
                            identity.participation_ratio.value, identity.effective_rank_squared.interval.high})
    CHECK(std::abs(rank - 30) <= 1e-9);
}

namespace {

constexpr Index repetitions = 200;

struct Hits {
  Index trace_norm = 0, participation_ratio = 0, effective_rank = 0, effective_rank_squared = 0;
  Index least() const { return std::min({trace_norm, participation_ratio, effective_rank, effective_rank_squared}); }
};

// How often each interval covers and is no wider than a half of the truth (one of any width would cover), with probes
// that are `size` times independent signs.
Hits hits_of(const Matrix<double>& A, const LinearMap& map, double size = 1, Index count = repetitions) {
  const Truth truth(singular_values(A));
  Hits hits;
  for (Index repetition = 0; repetition < count; ++repetition) {
    auto signs = generator_for("signs", repetition);
    const auto estimate = estimated(map, size * random_signs(signs, A.cols(), 12), repetition);
    const auto covers = [](const Bracketed& b, double value) {
      const double rounding = 1e-9 * value;
      return b.interval.low <= value + rounding && value <= b.interval.high + rounding &&
             b.interval.high - b.interval.low <= value / 2;
    };
    hits.trace_norm += covers(estimate.trace_norm, truth.trace_norm);
    hits.participation_ratio += covers(estimate.participation_ratio, truth.participation_ratio);
    hits.effective_rank += covers(estimate.effective_rank, truth.effective_rank);
    hits.effective_rank_squared += covers(estimate.effective_rank_squared, truth.effective_rank_squared);
  }
  return hits;
}

// Fewer hits of a 95 % interval have probability 1e-6 over `tests`.
Index fewest_hits(double tests) {
  const boost::math::binomial covered(repetitions, 0.95);
  Index fewest = repetitions;
  while (cdf(covered, static_cast<double>(fewest - 1)) > 1e-6 / tests) --fewest;
  return fewest;
}

}  // namespace

TEST_CASE("intervals of traces cover the dense truth as often as they say", "[statistics]") {
  const std::vector<Matrix<double>> matrices = {attention(40, 40, 1, false), attention(40, 40, 1, true),
                                                attention(60, 30, 3, false), geometric(36, 0.9)};
  for (const auto& A : matrices) {
    const Hits hits = hits_of(A, map_of(A));
    CAPTURE(A.rows(), A.cols(), hits.trace_norm, hits.participation_ratio, hits.effective_rank,
            hits.effective_rank_squared);
    CHECK(hits.least() >= fewest_hits(4.0 * static_cast<double>(matrices.size())));
  }
}

TEST_CASE("a probe that is too long, or A for A^T, shows in coverage", "[statistics]") {
  const Matrix<double> A = attention(40, 40, 1, true);
  const Index fewest = fewest_hits(16);
  CHECK(hits_of(A, map_of(A), 1.1).trace_norm < fewest);
  LinearMap forgotten = map_of(A);
  forgotten.transposed_times = forgotten.times;
  CHECK(hits_of(A, forgotten).effective_rank < fewest);
}

}  // namespace attnbench::spectra_test
