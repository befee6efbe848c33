// Skyformer where its answers are known: rows that the landmarks cover, residuals that more landmarks only lower, and
// inputs at the edges. methods.md E.
#include <cmath>

#include "harness/linalg/factorisations.hpp"
#include "harness/measures/attention_matrix.hpp"
#include "tests/cases.hpp"
#include "tests/misuse.hpp"
#include "tests/oracle/oracle.hpp"

namespace attnbench::skyformer_test {

namespace {

constexpr double tolerance = 1e-12;

Matrix<double> out_of(const std::string& spec, const TestHead& problem, Mask mask = {}, Index replicate = 0) {
  return attend(*drawn(spec, problem, mask, nullptr, replicate), problem.head, mask);
}

double distance(const Matrix<double>& a, const Matrix<double>& b) { return (a - b).cwiseAbs().maxCoeff(); }

TestHead gaussian(Index n, Index d = 6, double scale = 0.8) {
  return gaussian_problem({.nq = n, .nk = n, .d = d, .dv = 4}, scale);
}

// Queries and keys that take five values in turn.
TestHead five_values(Index n) {
  TestHead problem = gaussian(n);
  for (Index j = 5; j < n; ++j) {
    problem.head.Q.row(j) = problem.head.Q.row(j % 5).eval();
    problem.head.K.row(j) = problem.head.K.row(j % 5).eval();
  }
  return problem;
}

// C - C~ between rows X, as the method computes C~: queries and keys are both X.
Matrix<double> residual(const std::string& spec, const TestHead& problem, Index replicate) {
  TestHead both = problem;
  both.head.Q = both.head.K;
  const Index n = both.shape.nk;
  Matrix<double> K(n, n);
  std::vector<double> log_rows(static_cast<size_t>(n)), log_columns(static_cast<size_t>(n));
  Context context;
  drawn(spec, both, {}, nullptr, replicate)->kernel()->kernel(both.head.view(), context, K, log_rows, log_columns);
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j)
      K(i, j) = std::exp(-(both.head.K.row(i) - both.head.K.row(j)).squaredNorm() / 2) -
                K(i, j) * std::exp(log_rows[static_cast<size_t>(i)] + log_columns[static_cast<size_t>(j)]);
  return K;
}

}  // namespace

TEST_CASE("as many landmarks as rows, or landmarks at every value, give softmax", "[unit]") {
  const TestHead problem = gaussian(30);
  const Matrix<double> exact = out_of("softmax", problem);
  CHECK(distance(out_of("skyformer:landmarks=60", problem), exact) < tolerance);
  CHECK(distance(out_of("skyformer:landmarks=59", problem), exact) < 1e-8);
  CHECK(distance(out_of("skyformer:landmarks=12", problem), exact) > 1e-2);
  // The 100 rows have ten values, each ten times: of 91 rows, one at least has each value.
  const TestHead repeated = five_values(50);
  CHECK(distance(out_of("skyformer:landmarks=91", repeated), out_of("softmax", repeated)) < 1e-10);
}

TEST_CASE("the ridge and the scale of Skyformer's authors agree with their transcription", "[second-paths]") {
  for (const std::string spec :
       {"skyformer:landmarks=12,ridge=0.1", "skyformer:landmarks=100,ridge=0.1,normalise=false",
        "skyformer:landmarks=12,fixed_scale=true", "skyformer:landmarks=100,fixed_scale=true",
        "skyformer:landmarks=12,ridge=0.1,fixed_scale=true,normalise=false"}) {
    INFO(spec);
    for (const Mask& mask : {Mask{}, Mask{.keys = 20}}) {
      const TestHead problem = gaussian(30);
      const auto method = drawn(spec, problem, mask);
      const auto want = oracle::attention(Params("methods", spec), method->state(), problem.head, mask);
      CHECK(distance(attend(*method, problem.head, mask), want.out) < 1e2 * tolerance);
    }
  }
  // At d = 32 the authors' constant is d's.
  const TestHead problem = gaussian(30, 32, 0.3);
  CHECK(distance(out_of("skyformer:landmarks=12,fixed_scale=true", problem),
                 out_of("skyformer:landmarks=12", problem)) < tolerance);
}

TEST_CASE("without a normaliser the output is C~ V, of the Gaussian kernel", "[unit]") {
  const TestHead problem = gaussian(30);
  Matrix<double> C(30, 30);
  for (Index i = 0; i < 30; ++i)
    for (Index j = 0; j < 30; ++j)
      C(i, j) = std::exp(-(problem.head.Q.row(i) - problem.head.K.row(j)).squaredNorm() / 2);
  CHECK(distance(out_of("skyformer:landmarks=60,normalise=false", problem), C * problem.head.V) < tolerance);
  CHECK(distance(out_of("skyformer:landmarks=59,normalise=false", problem), C * problem.head.V) < 1e-8);
  CHECK(distance(out_of("skyformer:landmarks=60,normalise=false", problem), out_of("softmax", problem)) > 1e-2);
}

// Nystroemformer has no such order. Planted: landmarks of another draw, which are not the first of more.
TEST_CASE("the residual of Skyformer is positive semidefinite, and more landmarks only lower it", "[unit]") {
  for (const Index d : {2, 6}) {
    const TestHead problem = gaussian(40, d);
    Matrix<double> before = residual("skyformer:landmarks=1,normalise=false", problem, 0);
    Matrix<double> planted = before;
    double rise = 0, planted_rise = 0, lowered = 0;
    for (const Index m : {2, 3, 5, 8, 13, 21, 34, 55}) {
      const std::string spec = fmt::format("skyformer:landmarks={},normalise=false", m);
      const Matrix<double> R = residual(spec, problem, 0), other = residual(spec, problem, m);
      CHECK(symmetric_eigenvectors(R).values.front() > -1e-8);
      CHECK(symmetric_eigenvectors(before - R).values.front() > -1e-8);
      rise = std::max(rise, (R - before).diagonal().maxCoeff());
      planted_rise = std::max(planted_rise, (other - planted).diagonal().maxCoeff());
      lowered += (before - R).trace();
      before = R;
      planted = other;
    }
    CHECK(rise < 1e-8);
    CHECK(planted_rise > 1e-2);
    CHECK(lowered > 1);
  }
}

TEST_CASE("Skyformer at the edge is finite, and exact where one landmark says all", "[unit]") {
  for (const Index m : {1, 2, 5, 14})
    for (Index replicate = 0; replicate < 5; ++replicate) {
      const std::string spec = fmt::format("skyformer:landmarks={}", m);
      INFO(spec);
      TestHead zero_values = gaussian(15), equal_values = gaussian(15), equal_rows = gaussian(15),
               one_key = gaussian(15), large = gaussian(15);
      zero_values.head.V.setZero();
      CHECK(out_of(spec, zero_values, {}, replicate).isZero(0));
      CHECK(out_of(spec + ",normalise=false", zero_values, {}, replicate).isZero(0));
      equal_values.head.V.rowwise() = Eigen::RowVectorXd::LinSpaced(4, 1, 4).eval();
      CHECK(distance(out_of(spec, equal_values, {}, replicate), equal_values.head.V) < 1e-9);
      equal_rows.head.K.rowwise() = Eigen::RowVectorXd::Constant(6, 0.3).eval();
      equal_rows.head.Q = equal_rows.head.K;
      CHECK(distance(out_of(spec, equal_rows, {}, replicate), out_of("uniform", equal_rows)) < 1e-9);
      one_key.head.K.setZero();
      one_key.head.Q.setConstant(20);
      one_key.head.K.row(4).setConstant(20);  // a logit of 2400 over 0
      large.head.Q *= 100;
      large.head.K *= 100;
      for (const TestHead& problem : {one_key, large})
        for (const std::string normalise : {"", ",normalise=false"}) {
          CHECK(out_of(spec + normalise, problem, {}, replicate).allFinite());
          CHECK(attend(*draw_method<float>(Params("methods", spec + normalise), problem.shape, problem, nullptr,
                                           replicate),
                       problem.head.cast<float>(), {})
                    .allFinite());
        }
      CHECK(out_of(spec, gaussian_problem({.nq = 9, .nk = 9, .d = 1, .dv = 1}, 0.8), {}, replicate).allFinite());
      CHECK(out_of(spec, gaussian_problem({.nq = 9, .nk = 2, .d = 3, .dv = 2}, 0.8), {}, replicate).allFinite());
      CHECK(out_of(spec, gaussian(15), {.keys = 0}, replicate).isZero(0));
    }
}

// With few landmarks of spread keys weights are negative, and some denominators are.
TEST_CASE("denominators of Skyformer that are not positive are there, and their rows are finite", "[unit]") {
  Index negative = 0;
  for (Index replicate = 0; replicate < 20; ++replicate) {
    const TestHead problem = gaussian(40, 4, 1.5);
    const auto method = drawn("skyformer:landmarks=30", problem, {}, nullptr, replicate);
    std::vector<double> values(40), log_scale(40);
    Context context;
    method->kernel()->normalisers(problem.head.view(), {}, context, values, log_scale);
    for (const double value : values) negative += value <= 0;
    CHECK(attend(*method, problem.head, {}).allFinite());
  }
  CHECK(negative > 0);
}

TEST_CASE("Skyformer takes one landmark at least", "[unit]") {
  CHECK_THROWS_AS(Params("methods", "skyformer:landmarks=0"), Misuse);
}

}  // namespace attnbench::skyformer_test
