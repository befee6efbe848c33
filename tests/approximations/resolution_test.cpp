// MRA-2 and multipole attention where their answers are known: heads that are constant on blocks, everything refined,
// and the sign of Jensen's inequality. Forgotten sizes and blocks chosen wrongly are planted. methods.md T.
#include <algorithm>
#include <cmath>

#include "harness/measures/attention_matrix.hpp"
#include "tests/cases.hpp"
#include "tests/misuse.hpp"
#include "tests/oracle/oracle.hpp"

namespace attnbench::resolution_test {
namespace {

constexpr double tolerance = 1e-12;
constexpr double seen = 1e-3;  // what a mistake moves outputs of size 1 by, at least

Matrix<double> out_of(const std::string& spec, const TestHead& problem, Mask mask = {},
                      const Tensors* state = nullptr) {
  return attend(*drawn(spec, problem, mask, state), problem.head, mask);
}

double distance(const Matrix<double>& a, const Matrix<double>& b) { return (a - b).cwiseAbs().maxCoeff(); }

TestHead gaussian(Index n = 60, Index d = 6, double scale = 0.8) {
  return gaussian_problem({.nq = n, .nk = n, .d = d, .dv = 4}, scale);
}

Matrix<double> matrix_of(const std::string& spec, const TestHead& problem, Mask mask = {}) {
  const auto method = drawn(spec, problem, mask);
  REQUIRE(method->rows());
  Matrix<double> A(problem.shape.nq, problem.shape.nk);
  Context context;
  method->rows()->attention_rows(problem.head.view(), mask, 0, context, A);
  return A;
}

// Every row of a block of `length` rows is the first one.
void make_constant(Matrix<double>& X, Index length) {
  for (Index i = 0; i < X.rows(); ++i) X.row(i) = X.row(i - i % length).eval();
}

Matrix<double> exponentials(const TestHead& problem) {
  return (problem.head.Q * problem.head.K.transpose()).array().exp();
}

}  // namespace

TEST_CASE("MRA-2 is exact where queries and keys are constant on blocks, refined or not", "[methods]") {
  TestHead problem = gaussian_problem({.nq = 45, .nk = 62, .d = 6, .dv = 4}, 0.8);
  make_constant(problem.head.Q, 8);
  make_constant(problem.head.K, 8);
  const Matrix<double> exact = out_of("softmax", problem);
  for (const char* refine : {"0", "1", "11", "48"})
    CHECK(distance(out_of("mra:block=8,refine=" + std::string(refine), problem), exact) < tolerance);
  CHECK(distance(out_of("mra:block=7,refine=11", problem), exact) > seen);
  // Planted: the last block of keys, which has 6, counted as 8.
  TestHead planted = problem;
  planted.shape.nk = 64;
  for (auto* X : {&planted.head.K, &planted.head.V}) {
    X->conservativeResize(64, Eigen::NoChange);
    X->bottomRows(2) = X->middleRows(60, 2).eval();
  }
  CHECK(distance(out_of("softmax", planted), exact) > seen);
}

TEST_CASE("MRA-2 with every pair of blocks refined is softmax, with one fewer it is not", "[methods]") {
  const TestHead problem = gaussian(61);
  for (const Mask& mask : {Mask{}, Mask{.keys = 41}, Mask{.offset = 30, .keys = 41}, Mask{.offset = -5, .keys = 50}}) {
    INFO(to_string(mask));
    CHECK(distance(out_of("mra:block=8,refine=1000", problem, mask), out_of("softmax", problem, mask)) < tolerance);
  }
  CHECK(distance(out_of("mra:block=8,refine=64", problem), out_of("softmax", problem)) < tolerance);
  CHECK(distance(out_of("mra:block=8,refine=63", problem), out_of("softmax", problem)) > 1e-6);
  CHECK(distance(out_of("mra:block=1,refine=0", problem), out_of("softmax", problem)) < tolerance);
}

TEST_CASE("MRA-2 refines the pairs of the largest products of means", "[methods]") {
  const TestHead problem = gaussian(64);
  const Matrix<double> exact = exponentials(problem);
  Matrix<double> q(8, 6), k(8, 6);
  for (Index a = 0; a < 8; ++a) {
    q.row(a) = problem.head.Q.middleRows(8 * a, 8).colwise().mean();
    k.row(a) = problem.head.K.middleRows(8 * a, 8).colwise().mean();
  }
  const Matrix<double> coarse = q * k.transpose();
  std::vector<double> sorted(coarse.data(), coarse.data() + 64);
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  for (const Index refine : {0, 5, 20}) {
    Matrix<double> weights(64, 64);
    for (Index i = 0; i < 64; ++i)
      for (Index j = 0; j < 64; ++j) {
        const double of_blocks = coarse(i / 8, j / 8);
        const bool refined = refine > 0 && of_blocks >= sorted[static_cast<size_t>(refine - 1)];
        weights(i, j) = refined ? exact(i, j) : std::exp(of_blocks);
      }
    for (Index i = 0; i < 64; ++i) weights.row(i) /= weights.row(i).sum();
    CHECK(distance(matrix_of("mra:block=8,refine=" + std::to_string(refine), problem), weights) < tolerance);
  }
}

TEST_CASE("a coarse weight of MRA-2 is never above the weight of its pair of blocks", "[methods]") {
  double least_gap = INFINITY, planted = -INFINITY;
  for (const double scale : {0.1, 0.8, 2.0}) {
    const TestHead problem = gaussian_problem({.nq = 45, .nk = 62, .d = 6, .dv = 4}, scale);
    const Matrix<double> exact = exponentials(problem), A = matrix_of("mra:block=8,refine=0", problem);
    for (Index a = 0; a < 45; a += 8)
      for (Index b = 0; b < 62; b += 8) {
        const Index rows = std::min<Index>(8, 45 - a), keys = std::min<Index>(8, 62 - b);
        const Eigen::RowVectorXd q = problem.head.Q.middleRows(a, rows).colwise().mean(),
                                 k = problem.head.K.middleRows(b, keys).colwise().mean();
        const double mass = exact.block(a, b, rows, keys).sum(), n = static_cast<double>(rows * keys);
        least_gap = std::min(least_gap, mass / (n * std::exp(q.dot(k))) - 1);
        planted = std::max(planted, std::exp(q.dot(k)) / exact(a, b) - 1);
        // The method's weights are in this proportion.
        CHECK(std::abs(A(a, b) / A(a, 0) / std::exp(q.dot(k) - q.dot(problem.head.K.topRows(8).colwise().mean())) - 1) <
              1e-10);
      }
  }
  CHECK(least_gap > -tolerance);
  CHECK(planted > seen);  // planted: one entry's weight for that of the pair, which has no sign
}

TEST_CASE("the epsilon of the authors' module takes its share of every row", "[methods]") {
  const TestHead problem = gaussian(64);
  for (const std::string refine : {"0", "9", "64"}) {
    const std::string spec = "mra:block=8,epsilon=0.01,refine=" + refine;
    const auto want = oracle::attention(Params("methods", spec), {}, problem.head, {});
    CHECK(distance(out_of(spec, problem), want.out) < tolerance);
    const Matrix<double> sums = matrix_of(spec, problem).rowwise().sum();
    CHECK(sums.maxCoeff() < 1);
    CHECK(sums.minCoeff() > 1 - 0.01);
  }
}

TEST_CASE("queries at padded positions move no other row of MRA-2", "[methods]") {
  TestHead problem = gaussian(60);
  const Mask mask{.keys = 43};
  const Matrix<double> before = out_of("mra:block=8,refine=7", problem, mask);
  problem.head.Q.bottomRows(17) *= 50;
  CHECK(identical<double>(out_of("mra:block=8,refine=7", problem, mask).topRows(43), before.topRows(43)));
}

TEST_CASE("multipole attention is exact for keys that are equal on clusters, and with a budget for all keys",
          "[methods]") {
  TestHead problem = gaussian();
  const Matrix<double> before = out_of("softmax", problem);
  CHECK(distance(out_of("multipole:clusters=5,exact=60", problem), before) < tolerance);
  CHECK(distance(out_of("multipole:clusters=5,exact=59", problem), before) > seen);
  CHECK(distance(out_of("multipole:clusters=60,exact=0", problem), before) < tolerance);
  for (Index j = 5; j < 60; ++j) problem.head.K.row(j) = problem.head.K.row(j % 5).eval();
  const Matrix<double> exact = out_of("softmax", problem);
  for (const std::string budget : {"0", "12", "30"})
    CHECK(distance(out_of("multipole:clusters=5,exact=" + budget, problem), exact) < tolerance);
  CHECK(distance(out_of("multipole:clusters=4,exact=0", problem), exact) > seen);
  // Clusters of one size have no size to forget: 41 of 60 keys take the first value.
  for (Index j = 0; j < 45; ++j) problem.head.K.row(j) = problem.head.K.row(0).eval();
  CHECK(distance(out_of("multipole:clusters=5,exact=0", problem), out_of("softmax", problem)) < tolerance);
}

TEST_CASE("a cluster of multipole attention never weighs more than its keys, and the nearest ones are read key by key",
          "[methods]") {
  constexpr Index n = 80, budget = 30;
  const TestHead problem = gaussian(n);
  const Matrix<double> exact = exponentials(problem), coarse = matrix_of("multipole:clusters=6,exact=0", problem),
                       some = matrix_of("multipole:clusters=6,exact=30", problem);
  // Keys of one cluster have one weight in every row.
  std::vector<std::vector<Index>> clusters;
  for (Index j = 0; j < n; ++j) {
    const auto own = std::find_if(clusters.begin(), clusters.end(),
                                  [&](const auto& members) { return coarse.col(members[0]) == coarse.col(j); });
    if (own == clusters.end())
      clusters.push_back({j});
    else
      own->push_back(j);
  }
  REQUIRE(clusters.size() == 6);
  double planted = -INFINITY;
  for (Index i = 0; i < n; ++i) {
    std::vector<std::pair<double, size_t>> order;  // -q.c and the cluster
    Eigen::RowVectorXd of_means(n), of_some = exact.row(i);
    for (size_t c = 0; c < clusters.size(); ++c) {
      const double size = static_cast<double>(clusters[c].size());
      Eigen::RowVectorXd mean = Eigen::RowVectorXd::Zero(6);
      double mass = 0;
      for (const Index j : clusters[c]) {
        mean += problem.head.K.row(j) / size;
        mass += exact(i, j);
      }
      const double logit = problem.head.Q.row(i).dot(mean);
      CHECK(size * std::exp(logit) <= mass * (1 + tolerance));
      planted = std::max(planted, size * exact(i, clusters[c][0]) / mass - 1);
      for (const Index j : clusters[c]) of_means[j] = std::exp(logit);
      order.emplace_back(-logit, c);
    }
    CHECK(distance(coarse.row(i), of_means / of_means.sum()) < tolerance);
    std::sort(order.begin(), order.end());
    Index keys = 0;
    for (const auto& [logit, c] : order) {
      keys += std::ssize(clusters[c]);
      for (const Index j : clusters[c])
        if (keys > budget) of_some[j] = of_means[j];
    }
    CHECK(distance(some.row(i), of_some / of_some.sum()) < tolerance);
  }
  CHECK(planted > seen);  // planted: one key in place of the mean, whose weight has no sign
}

TEST_CASE("budgets and sizes at the edges of both resolutions", "[unit]") {
  const TestHead one = gaussian_problem({.nq = 3, .nk = 1, .d = 1, .dv = 2}, 0.8);
  for (const char* spec : {"mra:block=8,refine=0", "mra:block=8,refine=1", "multipole:clusters=3,exact=0"}) {
    INFO(spec);
    CHECK(distance(out_of(spec, one), one.head.V.replicate(3, 1)) < tolerance);
    CHECK_THROWS_AS(drawn(spec, one, {.causal = true}), Skip);
    CHECK(out_of(spec, one, {.keys = 0}).isZero(0));
  }
  for (const char* spec : {"mra:block=0", "mra:refine=-1", "multipole:clusters=0", "multipole:exact=-1"}) {
    INFO(spec);
    CHECK_THROWS_AS(Params("methods", spec), Misuse);
  }
}

}  // namespace attnbench::resolution_test
