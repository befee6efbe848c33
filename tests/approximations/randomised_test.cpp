// Randomised attention, LARA and EVA where their answers are known: rows and sums without bias over draws, keys that
// are equal on chunks, and inputs at the edges. Forgotten weights and proposals 5 % off are planted. methods.md A10.
#include <cmath>

#include "harness/core/estimates.hpp"
#include "tests/cases.hpp"
#include "tests/misuse.hpp"
#include "tests/oracle/oracle.hpp"
#include "tests/scores.hpp"

namespace attnbench::randomised_test {

namespace {

constexpr double tolerance = 1e-12;
constexpr double seen = 1e-2;  // what a mistake moves outputs of size 1 by, at least

Matrix<double> out_of(const std::string& spec, const TestHead& problem, Mask mask = {}) {
  return attend(*drawn(spec, problem, mask), problem.head, mask);
}

double distance(const Matrix<double>& a, const Matrix<double>& b) { return (a - b).cwiseAbs().maxCoeff(); }

TestHead gaussian(Index n, Index d = 6, double scale = 0.8) {
  return gaussian_problem({.nq = n, .nk = n, .d = d, .dv = 4}, scale);
}

Eigen::RowVectorXd softmax(const Eigen::RowVectorXd& logits) {
  const Eigen::RowVectorXd weights = (logits.array() - logits.maxCoeff()).exp();
  return weights / weights.sum();
}

// Of rows that are independent estimates of one row: how many standard errors their mean is off, each column.
Scores scores_of(const Matrix<double>& rows, const Eigen::RowVectorXd& wanted, const std::string& what) {
  Scores scores;
  const double n = static_cast<double>(rows.rows());
  for (Index c = 0; c < rows.cols(); ++c) {
    const double mean = rows.col(c).mean(), variance = (rows.col(c).array() - mean).square().sum() / (n - 1);
    scores.push_back({fmt::format("{}, number {}", what, c), (mean - wanted[c]) / std::sqrt(variance / n)});
  }
  return scores;
}

// Rows of randomised attention of equal queries from the numbers that the method drew, with mistakes: proposals at
// `scale` times q + k_j, and `half` in place of 1/2 before |k_j|^2.
Matrix<double> plain_rows(const TestHead& problem, const Tensors& state, double scale, double half) {
  const auto& [Q, K, V, extra] = problem.head;
  const Eigen::RowVectorXd a = softmax(Q.row(0) * K.transpose()), squares = K.rowwise().squaredNorm();
  Matrix<double> rows(Q.rows(), V.cols());
  for (Index i = 0; i < Q.rows(); ++i) {
    Index key = 0;
    for (double sum = a[0]; sum <= state.at("u")(i, 0) && key + 1 < K.rows(); sum += a[key]) ++key;
    const Eigen::RowVectorXd w = scale * (Q.row(i) + K.row(key)) + state.at("z").row(i);
    rows.row(i) = softmax(w * K.transpose() - half * squares) * V;
  }
  return rows;
}

// K_ij of LARA with the balance heuristic, from the numbers that it drew: proposals at `scale` times their means, and
// with or without the importance weights.
Matrix<double> plain_kernel(const TestHead& problem, const Matrix<double>& z, double scale, bool weighed) {
  const auto& [Q, K, V, extra] = problem.head;
  const Index c = z.rows(), width = Q.rows() / c;
  Matrix<double> mu(c, Q.cols());
  for (Index a = 0; a < c; ++a)
    mu.row(a) = Q.middleRows(a * width, width).colwise().mean() + K.middleRows(a * width, width).colwise().mean();
  const Matrix<double> w = scale * mu + z;
  Matrix<double> estimate = Matrix<double>::Zero(Q.rows(), K.rows());
  for (Index a = 0; a < c; ++a) {
    double density = 0;
    for (Index b = 0; b < c; ++b) density += std::exp(w.row(a).dot(mu.row(b)) - mu.row(b).squaredNorm() / 2);
    if (!weighed) density = static_cast<double>(c);
    for (Index i = 0; i < Q.rows(); ++i)
      for (Index j = 0; j < K.rows(); ++j)
        estimate(i, j) +=
            std::exp(w.row(a).dot(Q.row(i) + K.row(j)) - (Q.row(i).squaredNorm() + K.row(j).squaredNorm()) / 2) /
            density;
  }
  return estimate;
}

// Keys that are equal within segments of each `length` tokens.
TestHead equal_within(Index n, Index length) {
  TestHead problem = gaussian(n);
  for (Index j = 0; j < n; ++j) problem.head.K.row(j) = problem.head.K.row(j / length * length).eval();
  return problem;
}

const std::vector<std::string> specs{
    "randomised:m=3",   "lara:c=5",         "lara:c=5,weights=balance", "eva:c=4,window=3",
    "eva:c=9,window=3", "eva:c=1,window=1", "eva:c=50,window=4",
};

}  // namespace

// 20 000 draws of one row for each of three problems, at an error rate of 1e-3: the planted mistakes move a number of
// the row by 2 % of the values' size.
TEST_CASE("a row of randomised attention is softmax's in the mean", "[statistics]") {
  constexpr Index draws = 20000;
  Scores right, far, forgotten;
  for (const Index nk : {5, 12, 30}) {
    TestHead problem = gaussian_problem({.nq = draws, .nk = nk, .d = 3, .dv = 4}, 1.2);
    problem.head.Q.rowwise() = problem.head.Q.row(0).eval();
    const auto method = drawn("randomised:m=1", problem);
    const Matrix<double> rows = attend(*method, problem.head, {});
    CHECK(distance(rows, plain_rows(problem, method->state(), 1, 0.5)) < tolerance);
    const Eigen::RowVectorXd exact = softmax(problem.head.Q.row(0) * problem.head.K.transpose()) * problem.head.V;
    append(right, scores_of(rows, exact, fmt::format("{} keys", nk)));
    append(far, scores_of(plain_rows(problem, method->state(), 1.05, 0.5), exact, "5 % off"));
    append(forgotten, scores_of(plain_rows(problem, method->state(), 1, 0), exact, "without |k|^2 / 2"));
  }
  check_family(right);
  check_found("proposals 5 % off", far, threshold(right));
  check_found("a forgotten norm", forgotten, threshold(right));
}

TEST_CASE("a row of m draws is their mean", "[unit]") {
  const TestHead problem = gaussian(9);
  const auto method = drawn("randomised:m=4", problem);
  const Matrix<double> rows = attend(*method, problem.head, {});
  Matrix<double> mean = Matrix<double>::Zero(9, 4);
  for (Index t = 0; t < 4; ++t) {
    Tensors one{{"u", method->state().at("u").col(t)}, {"z", Matrix<double>(9, 6)}};
    for (Index i = 0; i < 9; ++i) one.at("z").row(i) = method->state().at("z").row(4 * i + t);
    mean += attend(*drawn("randomised:m=1", problem, {}, &one), problem.head, {}) / 4;
  }
  CHECK(distance(rows, mean) < tolerance);
}

// 160 000 draws of 4 x 4 estimates at an error rate of 1e-3.
TEST_CASE("LARA's weights by the balance heuristic are exp(q.k) in the mean", "[statistics]") {
  constexpr Index draws = 160000, n = 4;
  const TestHead problem = gaussian(n, 3, 0.7);
  Matrix<double> right(draws, n * n), far(draws, n * n), forgotten(draws, n * n);
  std::vector<double> log_rows(n), log_columns(n);
  for (Index t = 0; t < draws; ++t) {
    const auto method = drawn("lara:c=2,weights=balance", problem, {}, nullptr, t);
    Matrix<double> K(n, n);
    Context context;
    method->kernel()->kernel(problem.head.view(), context, K, log_rows, log_columns);
    for (Index i = 0; i < n; ++i) K.row(i) *= std::exp(log_rows[static_cast<size_t>(i)]);
    const Matrix<double> z = method->state().at("z");
    if (t < 10) CHECK(distance(K, plain_kernel(problem, z, 1, true)) < 1e-10);
    right.row(t) = K.reshaped<Eigen::RowMajor>();
    far.row(t) = plain_kernel(problem, z, 1.05, true).reshaped<Eigen::RowMajor>();
    forgotten.row(t) = plain_kernel(problem, z, 1, false).reshaped<Eigen::RowMajor>();
  }
  Matrix<double> exact = (problem.head.Q * problem.head.K.transpose()).array().exp();
  const Eigen::RowVectorXd wanted = exact.reshaped<Eigen::RowMajor>();
  const Scores scores = scores_of(right, wanted, "entry");
  check_family(scores);
  check_found("proposals 5 % off", scores_of(far, wanted, "entry"), threshold(scores));
  check_found("forgotten importance weights", scores_of(forgotten, wanted, "entry"), threshold(scores));
}

TEST_CASE("heads of several methods claim of equal keys only what all of them do", "[unit]") {
  const Shape shape{.nq = 8, .nk = 8, .d = 4, .dv = 4};
  const auto claims = [&](const char* spec) {
    return find<MethodEntry>("per-head").claims(Params("methods", spec), shape);
  };
  CHECK(claims("per-head:[eva],[randomised]").equal_keys);
  CHECK_FALSE(claims("per-head:[eva],[local]").equal_keys);
  CHECK(claims("per-head:[kdeformer],[local]").scales_with_V);
  CHECK_FALSE(claims("per-head:[kdeformer],[gmlp]").scales_with_V);
}

TEST_CASE("sums of LARA are those of its rows", "[unit]") {
  const TestHead problem = gaussian(43);
  for (const Mask& mask : {Mask{}, Mask{.keys = 30}}) {
    const auto method = drawn("lara:c=5,weights=balance", problem, mask);
    const Matrix<double> out = attend(*method, problem.head, mask);
    Matrix<double> numerators(20, 4);
    std::vector<double> denominators(20), log_scale(20);
    Context context;
    unbiased_sums(*method)->sums(problem.head.view(), mask, 11, context, numerators, denominators, log_scale);
    for (Index i = 0; i < 20; ++i)
      CHECK((numerators.row(i) / denominators[static_cast<size_t>(i)] - out.row(11 + i)).norm() < tolerance);
  }
  CHECK_FALSE(unbiased_sums(*drawn("lara:c=5", problem)));
}

TEST_CASE("LARA's rows weigh the same c averages of the values", "[unit]") {
  const TestHead problem = gaussian(30);
  for (const std::string weights : {"query", "balance"}) {
    const Matrix<double> one = out_of("lara:c=1,weights=" + weights, problem);
    CHECK(distance(one, one.row(0).replicate(30, 1)) < tolerance);
    const Matrix<double> few = out_of("lara:c=3,weights=" + weights, problem);
    CHECK(distance(few, few.row(0).replicate(30, 1)) > seen);
  }
  // The two kinds of weights differ in alpha alone.
  CHECK(distance(out_of("lara:c=3", problem), out_of("lara:c=3,weights=balance", problem)) > 1e-3);
}

TEST_CASE("EVA is exact with a window of all tokens, and with a chunk for each key", "[unit]") {
  for (const Mask& mask : {Mask{}, Mask{.causal = true}, Mask{.keys = 31}, Mask{.causal = true, .keys = 31}}) {
    const TestHead problem = gaussian(43);
    const Matrix<double> exact = out_of("softmax", problem, mask);
    CHECK(distance(out_of("eva:c=3,window=43", problem, mask), exact) < tolerance);
    CHECK(distance(out_of("eva:c=1000,window=5", problem, mask), exact) < tolerance);
    CHECK(distance(out_of("eva:c=12,window=5", problem, mask), exact) > seen);
  }
}

// Chunks of equal keys have the same weight for each key, by which beta is their mean. c = 4 makes chunks of several
// windows, of which a row's window is left out.
TEST_CASE("EVA is exact where keys are equal on chunks", "[unit]") {
  for (const auto& [spec, length] : std::vector<std::pair<std::string, Index>>{
           {"eva:c=9,window=5", 5}, {"eva:c=1,window=5", 43}, {"eva:c=5,window=5", 10}, {"eva:c=4,window=5", 15}})
    for (const Mask& mask : {Mask{}, Mask{.causal = true}, Mask{.keys = 41}, Mask{.causal = true, .offset = 7}}) {
      INFO(spec);
      const TestHead problem = equal_within(43, length);
      CHECK(distance(out_of(spec, problem, mask), out_of("softmax", problem, mask)) < tolerance);
      if (mask.causal) continue;
      CHECK(distance(out_of(spec + ",overlapping=true", problem, mask), out_of("softmax", problem, mask)) > seen);
    }
}

TEST_CASE("EVA reads each key once, of all chunks", "[unit]") {
  // With zero queries and keys every key has the same weight in every draw.
  for (const std::string spec : {"eva:c=9,window=5", "eva:c=5,window=5", "eva:c=4,window=5", "eva:c=20,window=5"})
    for (const bool causal : {false, true}) {
      INFO(spec);
      TestHead problem = gaussian(43);
      problem.head.Q.setZero();
      problem.head.K.setZero();
      const Matrix<double> out = out_of(spec, problem, {.causal = causal});
      for (Index i = 0; i < 43; ++i) {
        const Eigen::RowVectorXd mean = problem.head.V.topRows(causal ? i + 1 : 43).colwise().mean();
        CHECK((out.row(i) - mean).norm() < tolerance);
      }
    }
}

TEST_CASE("no token moves an earlier row of EVA and of randomised attention", "[unit]") {
  const TestHead problem = gaussian(43);
  const Mask mask{.causal = true};
  for (const std::string spec : {"randomised:m=3", "eva:c=9,window=5", "eva:c=4,window=5", "eva:c=20,window=5"}) {
    INFO(spec);
    const auto method = drawn(spec, problem, mask);
    const Matrix<double> before = attend(*method, problem.head, mask);
    for (const Index token : {1, 4, 5, 9, 10, 21, 42}) {
      HeadData<double> moved = problem.head;
      moved.Q.row(token).array() -= 3;
      moved.K.row(token).array() += 5;
      moved.V.row(token) *= -50;
      CHECK(identical(Matrix<double>(attend(*method, moved, mask).topRows(token)),
                      Matrix<double>(before.topRows(token))));
    }
  }
}

TEST_CASE("published forms of random rows agree with their transcriptions", "[second-paths]") {
  for (const std::string spec : {"randomised:m=3,noise=false", "lara:c=5,noise=false", "lara:c=5,weights=over-queries",
                                 "lara:c=5,weights=balance,noise=false", "eva:c=4,window=3,sizes=false",
                                 "eva:c=9,window=3,noise=false", "eva:c=9,window=3,overlapping=true"})
    for (const Mask& mask : {Mask{}, Mask{.keys = 30}, Mask{.causal = true}, Mask{.causal = true, .offset = 4}}) {
      const TestHead problem = gaussian(43);
      Shape masked = problem.shape;
      masked.mask = mask;
      const Params params("methods", spec);
      if (!find<MethodEntry>(params.name()).claims(params, masked).no_form.empty()) continue;
      INFO(spec << ", " << to_string(mask));
      const auto method = drawn(spec, problem, mask);
      const auto want = oracle::attention(params, method->state(), problem.head, mask);
      CHECK(worst_error(attend(*method, problem.head, mask), want.out, want.condition, 1) < 1e2 * tolerance);
    }
}

TEST_CASE("random rows at the edge are finite, and exact where every draw gives softmax", "[unit]") {
  for (const auto& spec : specs) {
    INFO(spec);
    TestHead zero_values = gaussian(15), equal_values = gaussian(15), equal_keys = gaussian(15), one_key = gaussian(15),
             large = gaussian(15);
    zero_values.head.V.setZero();
    CHECK(out_of(spec, zero_values).isZero(0));
    equal_values.head.V.rowwise() = Eigen::RowVectorXd::LinSpaced(4, 1, 4).eval();
    CHECK(distance(out_of(spec, equal_values), equal_values.head.V) < tolerance);
    equal_keys.head.K.rowwise() = Eigen::RowVectorXd::Constant(6, 0.3).eval();
    CHECK(distance(out_of(spec, equal_keys), out_of("softmax", equal_keys)) < tolerance);
    one_key.head.K.setZero();
    one_key.head.Q.setConstant(20);
    one_key.head.K.row(4).setConstant(20);  // a logit of 2400 over 0
    const Matrix<double> out = out_of(spec, one_key);
    CHECK(out.allFinite());
    if (spec[0] == 'r') CHECK(distance(out, one_key.head.V.row(4).replicate(15, 1)) < tolerance);
    large.head.Q *= 100;
    large.head.K *= 100;
    CHECK(out_of(spec, large).allFinite());
    CHECK(attend(*draw_method<float>(Params("methods", spec), large.shape, large), large.head.cast<float>(), {})
              .allFinite());
    CHECK(out_of(spec, gaussian_problem({.nq = 9, .nk = 9, .d = 1, .dv = 1}, 0.8)).allFinite());
    CHECK(out_of(spec, gaussian_problem({.nq = 9, .nk = 2, .d = 3, .dv = 2}, 0.8)).allFinite());
    CHECK(out_of(spec, gaussian_problem({.nq = 1, .nk = 30, .d = 3, .dv = 2}, 0.8)).allFinite());
    CHECK(out_of(spec, gaussian(15), {.keys = 0}).isZero(0));
    if (spec[0] == 'l') continue;
    // The first rows see no key, and one.
    const TestHead problem = gaussian(15);
    const Matrix<double> few = out_of(spec, problem, {.causal = true, .offset = -1});
    CHECK(few.row(0).isZero(0));
    CHECK((few.row(1) - problem.head.V.row(0)).norm() < tolerance);
  }
}

TEST_CASE("numbers of draws, proposals and tokens of a window are 1 at least", "[unit]") {
  for (const char* spec : {"randomised:m=0", "lara:c=0", "eva:c=0", "eva:window=0", "lara:weights=best"})
    CHECK_THROWS_AS(Params("methods", spec), Misuse);
}

}  // namespace attnbench::randomised_test
