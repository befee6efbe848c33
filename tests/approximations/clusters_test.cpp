// Clusters and sorting against what is known without a transcription (methods.md F, oracles J45 to J49), the edges of
// their inputs, and what public code gets wrong (anchors P10, P14, P16), planted.
#include "approximations/clusters/clusters.hpp"

#include <cmath>
#include <numbers>
#include <numeric>

#include "harness/linalg/lapack.hpp"
#include "harness/measures/attention_matrix.hpp"
#include "harness/runner/plan.hpp"
#include "tests/cases.hpp"
#include "tests/catch.hpp"
#include "tests/misuse.hpp"
#include "tests/oracle/oracle.hpp"

namespace attnbench::clusters_test {

namespace {

constexpr double tolerance = 1e-12;  // see methods_test.cpp
constexpr double seen = 1e-2;        // what a planted bug moves outputs of size 1 by, at least

Matrix<double> result(const std::string& spec, const TestHead& problem, Mask mask = {},
                      const Tensors* state = nullptr) {
  return attend(*drawn(spec, problem, mask, state), problem.head, mask);
}

Matrix<double> matrix_of(const std::string& spec, const TestHead& problem, const Tensors* state = nullptr) {
  Context context;
  return attention_matrix(*drawn(spec, problem, {}, state), problem.head.view(), {}, context);
}

double difference(const Matrix<double>& a, const Matrix<double>& b) { return (a - b).cwiseAbs().maxCoeff(); }

// Against the transcription of the method without what a library does instead.
double error_of(const std::string& spec, const std::string& method, const TestHead& problem, Mask mask = {}) {
  const auto instance = drawn(spec, problem, mask);
  const auto want = oracle::attention(Params("methods", method), instance->state(), problem.head, mask);
  return difference(attend(*instance, problem.head, mask), want.out);
}

TestHead square(Index n, Index d = 8, Index dv = 4) {
  return gaussian_problem({.nq = n, .nk = n, .d = d, .dv = dv}, 0.8);
}

Matrix<double> normal(const char* what, Index row_count, Index columns) {
  auto generator = Streams(test_seed).stream("clusters test", what);
  return standard_normal(generator, row_count, columns);
}

// Softmax over the pairs of a set, row by row.
Matrix<double> softmax_of(const Matrix<double>& logits, const std::function<bool(Index, Index)>& in_set) {
  Matrix<double> A = Matrix<double>::Zero(logits.rows(), logits.cols());
  for (Index i = 0; i < A.rows(); ++i) {
    for (Index j = 0; j < A.cols(); ++j)
      if (in_set(i, j)) A(i, j) = std::exp(logits(i, j));
    A.row(i) /= A.row(i).sum();
  }
  return A;
}

}  // namespace

// ---- Reformer

TEST_CASE("Reformer's rounds come to the softmax over the union of what they find", "[methods]") {
  const TestHead problem = square(120);
  const std::string method = "reformer:buckets=4,chunk=16,rounds=3";
  for (const Mask& mask : {Mask{}, Mask{.causal = true}, Mask{.keys = 90}}) {
    INFO(to_string(mask));
    CHECK(error_of(method, method, problem, mask) < tolerance);
    // Libraries take the mean of the rounds, and no mask between buckets.
    CHECK(error_of(method + ",combine=uniform", method, problem, mask) > seen);
    CHECK(error_of(method + ",bucket_mask=false", method, problem, mask) > seen);
  }
}

TEST_CASE("Reformer with one chunk and all tokens in one bucket is attention to the others' directions", "[methods]") {
  TestHead problem = square(40, 6);
  problem.head.Q = problem.head.Q.cwiseAbs();
  const Tensors all_in_the_first{{"rotations", Matrix<double>::Ones(1, 6)}};
  const Matrix<double> Q = problem.head.Q * std::pow(6, 0.25);  // as before the scaling
  const Matrix<double> logits = Q * Q.rowwise().normalized().transpose() / std::sqrt(6.0);
  const Matrix<double> A = softmax_of(logits, [](Index i, Index j) { return i != j; });
  CHECK(difference(result("reformer:buckets=2,rounds=1,chunk=40", problem, {}, &all_in_the_first), A * problem.head.V) <
        tolerance);
}

TEST_CASE("a token without others in its bucket sees itself", "[methods]") {
  TestHead problem = square(2, 5);
  problem.head.Q.row(1) = -problem.head.Q.row(0);
  CHECK(identical(result("reformer:buckets=8,rounds=5", problem), problem.head.V));
  problem.head.Q.row(1) = 3 * problem.head.Q.row(0);  // one direction, one bucket
  CHECK(difference(result("reformer:buckets=8,rounds=5", problem), problem.head.V.colwise().reverse()) < tolerance);
}

TEST_CASE("a token's scale does not move it to another bucket", "[methods]") {
  TestHead problem = square(100);
  const auto method = drawn("reformer:buckets=8,chunk=8,rounds=2", problem);
  const auto patterns = [&] {
    std::vector<std::vector<Index>> keys(100);
    Context context;
    method->pattern()->keys_of_rows(problem.head.view(), {}, 0, context, keys);
    return keys;
  };
  const auto before = patterns();
  for (Index i = 0; i < 100; ++i) problem.head.Q.row(i) *= std::ldexp(1.0, static_cast<int>(i % 7) - 3);
  CHECK(patterns() == before);
}

// Chunks of the sorted order begin where all tokens' buckets say: the causal form that is published leaks through it.
TEST_CASE("a later token moves earlier rows of Reformer only where chunks are cut from the sorted order", "[methods]") {
  const TestHead problem = square(200);
  const auto moved_rows = [&](const std::string& chunks) {
    const Mask causal{.causal = true};
    const std::string spec = "reformer:buckets=4,chunk=8,rounds=2,chunks=" + chunks;
    const Matrix<double> before = result(spec, problem, causal);
    Index rows_moved = 0;
    for (const Index j : {Index(150), Index(199)}) {
      TestHead moved = problem;
      moved.head.Q.row(j) *= -1;
      const Matrix<double> after = result(spec, moved, causal);
      for (Index i = 0; i < j; ++i) rows_moved += !identical<double>(after.row(i), before.row(i));
    }
    return rows_moved;
  };
  CHECK(moved_rows("sorted") > 10);
  CHECK(moved_rows("bucket") == 0);
  CHECK(moved_rows("auto") == 0);
}

// Two tokens at an angle theta share a bucket with probability 1 - theta/pi of two, (1 - theta/pi)^2 of four. 20,000
// draws for each of six; a normal tail at 5.3 standard errors is 1.2e-7 on both sides, 7e-7 in all. An error of 0.02
// would be seen; the planted hash, which takes the largest |x R|, errs by 0.08 and more.
TEST_CASE("tokens collide with the probability of their angle", "[statistics]") {
  constexpr Index draws = 20000;
  constexpr double standard_errors = 5.3;
  TestHead problem = square(2, 3, 1);
  for (const Index buckets : {2, 4})
    for (const double theta : {std::numbers::pi / 6, std::numbers::pi / 3, 0.9 * std::numbers::pi}) {
      problem.head.Q.setZero();
      problem.head.Q(0, 0) = 2;
      problem.head.Q(1, 0) = 0.5 * std::cos(theta);
      problem.head.Q(1, 1) = 0.5 * std::sin(theta);
      Index together = 0, together_planted = 0;
      for (Index r = 0; r < draws; ++r) {
        const auto method = drawn("reformer:rounds=1,buckets=" + std::to_string(buckets), problem, {}, nullptr, r);
        std::vector<std::vector<Index>> keys(1);
        Context context;
        method->pattern()->keys_of_rows(problem.head.view(), {}, 0, context, keys);
        together += keys[0] == std::vector<Index>{1};
        const Matrix<double> turned = problem.head.Q * method->state().at("rotations").transpose();
        Index first = 0, second = 0;
        turned.row(0).cwiseAbs().maxCoeff(&first);
        turned.row(1).cwiseAbs().maxCoeff(&second);
        together_planted += first == second;
      }
      const double p = std::pow(1 - theta / std::numbers::pi, buckets == 2 ? 1 : 2);
      const double allowed = standard_errors * std::sqrt(p * (1 - p) / draws);
      INFO(buckets << " buckets at " << theta << ": " << static_cast<double>(together) / draws << ", expected " << p);
      CHECK(std::abs(static_cast<double>(together) / draws - p) < allowed);
      CHECK(std::abs(static_cast<double>(together_planted) / draws - p) > allowed);
    }
}

// ---- Routing and clustered

TEST_CASE("one centroid that takes all tokens is exact attention", "[methods]") {
  const TestHead problem = square(70);
  CHECK(difference(result("routing:clusters=1", problem), result("softmax", problem)) < tolerance);
}

TEST_CASE("routing counts the tokens that no centroid takes, whose rows are 0, and those that several take",
          "[methods]") {
  const std::vector<std::vector<Index>> members{{0, 1}, {1, 2}, {1}};
  const Coverage counted = coverage(members, 5);
  CHECK(counted.tokens == 5);
  CHECK(counted.in_none == 2);
  CHECK(counted.in_several == 1);

  const TestHead problem = square(60);
  const auto method = drawn("routing:clusters=4", problem);
  Context context;
  const auto of_queries = routes<double>(context, problem.head.Q, method->state().at("centroids"), 0);
  const Coverage reached = coverage(of_queries, 60);
  for (const auto& cluster : of_queries) CHECK(cluster.size() == 15);
  CHECK(reached.in_none > 0);
  CHECK(reached.in_several > 0);
  const Matrix<double> out = attend(*method, problem.head, {});
  Index empty = 0;
  for (Index i = 0; i < 60; ++i) empty += (out.row(i).array() == 0).all();
  CHECK(empty == reached.in_none);
  const auto rows_of_ones = matrix_of("routing:clusters=4", problem).rowwise().sum().eval();
  for (Index i = 0; i < 60; ++i)
    CHECK((std::abs(rows_of_ones[i]) < tolerance || std::abs(rows_of_ones[i] - 1) < tolerance));
}

TEST_CASE("routing's centroids have length 1", "[methods]") {
  const auto method = drawn("routing:clusters=8", square(60));
  const auto state = method->state();
  const Matrix<double>& centroids = state.at("centroids");
  CHECK(centroids.rows() == 8);
  for (Index c = 0; c < 8; ++c) CHECK(std::abs(centroids.row(c).norm() - 1) < tolerance);
}

TEST_CASE("of equal scores the first tokens are taken", "[methods]") {
  const std::vector<double> scores{1, 3, 2, 3, 2, 2};
  CHECK(largest<double>(scores, 3) == std::vector<Index>{1, 2, 3});
  CHECK(largest<double>(scores, 9).size() == 6);
  CHECK(largest<double>(scores, 0).empty());
}

TEST_CASE("as many clusters as queries is exact attention", "[methods]") {
  const TestHead problem = square(70);
  const Matrix<double> exact = result("softmax", problem);
  CHECK(difference(result("clustered:clusters=70", problem), exact) < tolerance);
  CHECK(difference(result("improved-clustered:clusters=70,top=3", problem), exact) < tolerance);
}

TEST_CASE("a row of clustered attention is as near as its group's mean is to its query", "[methods]") {
  TestHead problem = square(90);
  const auto state = drawn("clustered:clusters=7", problem)->state();
  Context context;
  const Matrix<double>& uniforms = state.at("uniforms");
  const Groups groups = group_queries(context, problem.head.Q, {uniforms.data(), 7}, 5);
  const Matrix<double> error = matrix_of("clustered:clusters=7", problem) - matrix_of("softmax", problem);
  const double norm = singular_values(problem.head.K).front();
  for (Index i = 0; i < 90; ++i) {
    const Index c = groups.nearest[static_cast<size_t>(i)];
    CHECK(error.row(i).norm() <= norm * (problem.head.Q.row(i) - groups.centroids.row(c)).norm() / 2 + tolerance);
  }
}

TEST_CASE("own weights on the heaviest keys make no row of clustered attention worse", "[methods]") {
  const TestHead problem = gaussian_problem({.nq = 150, .nk = 150, .d = 8, .dv = 1}, 1.0);
  const Matrix<double> exact = matrix_of("softmax", problem), plain = matrix_of("clustered:clusters=6", problem);
  Index worse = 0, worse_planted = 0;
  double better = 0;
  for (const Index top : {1, 5, 20, 149}) {
    const Matrix<double> improved = matrix_of("improved-clustered:clusters=6,top=" + std::to_string(top), problem);
    for (Index i = 0; i < 150; ++i) {
      const auto distance = [&](const Eigen::RowVectorXd& row) { return (row - exact.row(i)).lpNorm<1>(); };
      const double before = distance(plain.row(i));
      worse += distance(improved.row(i)) > before + tolerance;
      better = std::max(better, before - distance(improved.row(i)));
      // Planted: own weights that sum to 1 and not to the group's mass on those keys.
      Eigen::RowVectorXd planted = improved.row(i);
      double mass = 0;
      for (Index j = 0; j < 150; ++j)
        if (improved(i, j) != plain(i, j)) mass += improved(i, j);
      for (Index j = 0; j < 150; ++j)
        if (improved(i, j) != plain(i, j)) planted[j] /= mass;
      worse_planted += distance(planted) > before + tolerance;
    }
  }
  CHECK(worse == 0);
  CHECK(better > 0.1);
  CHECK(worse_planted > 10);
}

TEST_CASE("softmax moves by half of what its logits move by, at most", "[methods]") {
  const Matrix<double> x = normal("logits", 300, 9), y = x + 0.3 * normal("moves", 300, 9);
  const auto all = [](Index, Index) { return true; };
  const Matrix<double> moved = softmax_of(x, all) - softmax_of(y, all);
  double most = 0;
  for (Index i = 0; i < 300; ++i) most = std::max(most, moved.row(i).norm() / (x.row(i) - y.row(i)).norm());
  CHECK(most <= 0.5);
  CHECK(most > 0.2);
}

// ---- Sinkhorn

namespace {

// Mistakes of libraries in sorted blocks. P10: every sorted block is the sum of all of them. P16: sorted values are the
// sorted keys.
enum class Bug { none, no_op_sort, values_are_keys };

// Each block attends to its own keys and to those of the block that `order` puts in its place.
Matrix<double> block_permuted(const HeadData<double>& head, const std::vector<Index>& order, Bug bug) {
  const Index N = std::ssize(order), b = head.K.rows() / N;
  Matrix<double> out(head.Q.rows(), head.V.cols());
  for (Index I = 0; I < N; ++I) {
    Matrix<double> K(2 * b, head.K.cols()), V(2 * b, head.V.cols());
    const Index J = order[static_cast<size_t>(I)];
    K << head.K.middleRows(I * b, b), head.K.middleRows(J * b, b);
    V << head.V.middleRows(I * b, b), head.V.middleRows(J * b, b);
    if (bug == Bug::no_op_sort) {
      K.bottomRows(b).setZero();
      V.bottomRows(b).setZero();
      for (Index other = 0; other < N; ++other) {
        K.bottomRows(b) += head.K.middleRows(other * b, b);
        V.bottomRows(b) += head.V.middleRows(other * b, b);
      }
    }
    if (bug == Bug::values_are_keys) V.bottomRows(b) = K.bottomRows(b);
    const Matrix<double> logits = head.Q.middleRows(I * b, b) * K.transpose();
    out.middleRows(I * b, b) = softmax_of(logits, [](Index, Index) { return true; }) * V;
  }
  return out;
}

// R whose largest assignment is `order`, by that much.
Tensors preferring(const std::vector<Index>& order, double gap) {
  Matrix<double> R = Matrix<double>::Zero(std::ssize(order), std::ssize(order));
  for (Index I = 0; I < R.rows(); ++I) R(I, order[static_cast<size_t>(I)]) = gap;
  return {{"R", R}};
}

// exp(log_P) after so many sweeps.
Matrix<double> balanced(Matrix<double> log_P, Index sweeps, double stop = 0) {
  Context context;
  sinkhorn(context, log_P, sweeps, stop);
  return log_P.array().exp();
}

double worst_sum(const Matrix<double>& P, bool columns) {
  return columns ? (P.colwise().sum().array() - 1).abs().maxCoeff() : (P.rowwise().sum().array() - 1).abs().maxCoeff();
}

}  // namespace

TEST_CASE("Sinkhorn attention with a permutation is attention to the own block and the permuted one", "[methods]") {
  const TestHead problem = square(60, 4, 4);
  const std::vector<Index> order{2, 0, 4, 1, 3};
  const Tensors state = preferring(order, 1000);
  for (const std::string spec : {"sinkhorn:blocks=5", "sinkhorn:blocks=5,dedup=true"}) {
    const Matrix<double> out = result(spec, problem, {}, &state);
    CHECK(difference(out, block_permuted(problem.head, order, Bug::none)) < tolerance);
    CHECK(difference(out, block_permuted(problem.head, order, Bug::no_op_sort)) > seen);
    CHECK(difference(out, block_permuted(problem.head, order, Bug::values_are_keys)) > seen);
  }
}

TEST_CASE("Sinkhorn attention that sorts each block to its own place is attention within blocks", "[methods]") {
  const TestHead problem = square(60);
  const Tensors state = preferring({0, 1, 2, 3, 4}, 1000);
  const Matrix<double> logits = problem.head.Q * problem.head.K.transpose();
  const Matrix<double> within = softmax_of(logits, [](Index i, Index j) { return i / 12 == j / 12; }) * problem.head.V;
  CHECK(difference(result("sinkhorn:blocks=5", problem, {}, &state), within) < tolerance);  // every key twice
  CHECK(difference(result("sinkhorn:blocks=5,dedup=true", problem, {}, &state), within) < tolerance);
}

TEST_CASE("after each of Sinkhorn's sweeps columns sum to one, and rows as far as it says", "[methods]") {
  const Matrix<double> R = normal("R", 6, 6);
  for (const Index sweeps : {1, 2, 5, 10}) {
    Matrix<double> log_P = R;
    Context context;
    const Balance balance = sinkhorn(context, log_P, sweeps, 0);
    const Matrix<double> P = log_P.array().exp();
    CHECK(worst_sum(P, true) < tolerance);
    CHECK(std::abs(worst_sum(P, false) - balance.residual) < tolerance);
    CHECK(balance.sweeps == sweeps);
  }
  Context context;
  Matrix<double> log_P = R;
  const Balance balance = sinkhorn(context, log_P, 1000, 1e-9);
  CHECK(balance.sweeps < 1000);
  CHECK(balance.residual <= 1e-9);
  // Planted: the softmax of rows in place of sweeps.
  CHECK(worst_sum(softmax_of(R, [](Index, Index) { return true; }), true) > seen);
}

TEST_CASE("what is added to a whole row or column of R changes no sorting matrix", "[methods]") {
  const Matrix<double> R = normal("R", 6, 6);
  Matrix<double> shifted = R;
  shifted.colwise() += normal("rows", 6, 1).col(0);
  shifted.rowwise() += normal("columns", 1, 6).row(0);
  CHECK(difference(balanced(shifted, 2000, 1e-14), balanced(R, 2000, 1e-14)) < tolerance);
  CHECK(difference(balanced(shifted, 1), balanced(R, 1)) > 1e-4);  // the limit is meant
}

TEST_CASE("at small temperatures a sorting matrix with a gap is the best assignment", "[methods]") {
  const std::vector<Index> order{3, 1, 4, 0, 2};
  Matrix<double> wanted = Matrix<double>::Zero(5, 5);
  for (Index I = 0; I < 5; ++I) wanted(I, order[static_cast<size_t>(I)]) = 1;
  const Matrix<double> R = wanted + 0.02 * normal("below the gap", 5, 5);
  double before = 1;
  for (const double temperature : {0.5, 0.2, 0.1, 0.05}) {
    const double error = difference(balanced(R / temperature, 1000, 1e-12), wanted);
    CHECK(error < before);
    before = error;
  }
  CHECK(before < 1e-6);
  // Without a gap sweeps converge slowly, and the residual says so.
  Context context;
  Matrix<double> log_P = normal("R", 25, 25) / 0.02;
  CHECK(sinkhorn(context, log_P, 20, 1e-9).residual > 1e-3);
}

TEST_CASE("a permutation that sorts the short last block leaves the places that it does not have without weight",
          "[methods]") {
  const TestHead problem = square(23);  // blocks of 5, 5, 5, 5 and 3
  const Tensors state = preferring({4, 3, 2, 1, 0}, 1000);
  const Matrix<double> out = result("sinkhorn:blocks=5", problem, {}, &state);
  const Matrix<double> logits = problem.head.Q * problem.head.K.transpose();
  const Matrix<double> A = softmax_of(logits, [](Index i, Index j) { return i / 5 == j / 5 || i / 5 + j / 5 == 4; });
  const Matrix<double> want = A * problem.head.V;
  CHECK(difference(out, want) < tolerance);
}

// ---- All of them

TEST_CASE("clusters of equal tokens, more clusters than tokens and chunks longer than the sequence", "[methods]") {
  const auto agrees = [](const std::string& spec, const TestHead& problem, Mask mask) {
    INFO(spec << " at n=" << problem.shape.nk << ", " << to_string(mask));
    CHECK(error_of(spec, spec, problem, mask) < tolerance);
  };
  for (const std::string spec :
       {"reformer:buckets=16,rounds=3,chunk=4", "reformer:buckets=2,rounds=2,chunk=1000", "reformer:chunk=1,rounds=1",
        "routing:clusters=1,top=3", "routing:clusters=9", "routing:clusters=3,top=1000", "clustered:clusters=1",
        "clustered:clusters=1000", "clustered:clusters=5,sweeps=0", "improved-clustered:clusters=1,top=2",
        "improved-clustered:clusters=1000,top=1000", "sinkhorn:blocks=1", "sinkhorn:blocks=1000",
        "sinkhorn:blocks=7,sweeps=0", "sinkhorn:blocks=4,gumbel=true,temperature=0.1"})
    for (const Index n : {1, 2, 9, 33})
      for (const Mask& mask : {Mask{}, Mask{.keys = (n + 1) / 2}}) {
        TestHead problem = square(n, 6);
        agrees(spec, problem, mask);
        problem.head.K.rowwise() = problem.head.K.row(0).eval();
        problem.head.Q.rowwise() = problem.head.Q.row(0).eval();
        agrees(spec, problem, mask);
        problem.head.K.setZero();
        problem.head.Q.setZero();
        agrees(spec, problem, mask);
      }
}

TEST_CASE("clusters stay finite at norms of 40 in float", "[methods]") {
  TestHead problem = square(100);
  problem.head.Q = 40 * problem.head.Q.rowwise().normalized().eval();
  problem.head.K = 40 * problem.head.K.rowwise().normalized().eval();
  problem.head.V.setOnes();
  for (const std::string spec : {"reformer:buckets=4,chunk=16", "clustered:clusters=4",
                                 "improved-clustered:clusters=4,top=5", "sinkhorn:blocks=5", "routing:clusters=1"}) {
    INFO(spec);
    const auto method = draw_method<float>(Params("methods", spec), problem.shape, problem);
    const Matrix<float> out = attend(*method, problem.head.cast<float>(), {});
    CHECK((out.array() - 1).abs().maxCoeff() < 1e-5F);
  }
}

TEST_CASE("a number of buckets that is odd is refused, and the message says why", "[methods]") {
  const std::string message = misuse_of([] { drawn("reformer:buckets=5", square(9)); });
  CHECK(contains(message, "buckets=5"));
  CHECK(contains(message, "even"));
  RunRequest request{
      .experiment = "rank", .methods = {"per-head:[local],[reformer:buckets=5]"}, .inputs = {"gaussian"}};
  CHECK(contains(misuse_of([&] { expand(request); }), "even"));
  CHECK(contains(misuse_of([] { Params("methods", "sinkhorn:temperature=0"); }), "temperature"));
  CHECK(contains(misuse_of([] { Params("methods", "routing:clusters=0"); }), "clusters"));
}

}  // namespace attnbench::clusters_test
