// Sampled keys (methods.md S): known answers, the keys that are drawn, and inputs at the edge.
#include <algorithm>
#include <cmath>
#include <set>

#include "harness/core/estimates.hpp"
#include "harness/theory/sampling_law.hpp"
#include "tests/cases.hpp"
#include "tests/misuse.hpp"
#include "tests/scores.hpp"

namespace attnbench::sampling_test {

namespace {

constexpr double tolerance = 1e-12;
const std::vector<std::string> laws{"uniform", "value-norm", "oracle", "optimal"};

TestHead square(Index n) { return gaussian_problem({.nq = n, .nk = n, .d = 6, .dv = 4}, 0.8); }

Matrix<double> output(const std::string& spec, const TestHead& problem, Mask mask = {},
                      const Tensors* state = nullptr) {
  return attend(*drawn(spec, problem, mask, state), problem.head, mask);
}

std::vector<std::vector<Index>> keys_of(const std::string& spec, const TestHead& problem, Mask mask = {}) {
  std::vector<std::vector<Index>> keys(static_cast<size_t>(problem.shape.nq));
  Context context;
  drawn(spec, problem, mask)->pattern()->keys_of_rows(problem.head.view(), mask, 0, context, keys);
  return keys;
}

double difference(const Matrix<double>& a, const Matrix<double>& b) { return (a - b).cwiseAbs().maxCoeff(); }

}  // namespace

TEST_CASE("as many different keys as a row sees, or a stratum for each, give softmax", "[unit]") {
  const TestHead problem = square(20);
  const Matrix<double> exact = output("softmax", problem);
  CHECK(difference(output("sampled:replacement=false,s=20", problem), exact) < tolerance);
  CHECK(difference(output("sampled:replacement=false,s=500", problem), exact) < tolerance);
  CHECK(difference(output("sampled:stratified=true,s=20", problem), exact) < tolerance);
  CHECK(difference(output("sampled:stratified=true,s=60", problem), exact) < tolerance);
  CHECK(difference(output("sampled:replacement=false,s=19", problem), exact) > 1e-3);
  const Mask causal{.causal = true};
  CHECK(difference(output("sampled:replacement=false,s=20", problem, causal), output("softmax", problem, causal)) <
        tolerance);
}

TEST_CASE("the oracle's row is the plain mean of the drawn values", "[unit]") {
  const TestHead problem = square(20);
  const auto method = drawn("sampled:law=oracle,s=1", problem);
  const auto keys = keys_of("sampled:law=oracle,s=1", problem);
  const Matrix<double> out = attend(*method, problem.head, {});
  for (Index i = 0; i < 20; ++i) {
    REQUIRE(keys[static_cast<size_t>(i)].size() == 1);
    CHECK((out.row(i) - problem.head.V.row(keys[static_cast<size_t>(i)][0])).norm() < tolerance);
  }
}

TEST_CASE("a row draws s keys, different ones without replacement, from those that it sees", "[unit]") {
  const TestHead problem = square(40);
  for (const bool causal : {false, true}) {
    const Mask mask{.causal = causal, .keys = 33};
    const auto distinct = keys_of("sampled:replacement=false,s=9", problem, mask);
    const auto repeated = keys_of("sampled:s=9", problem, mask);
    for (Index i = 0; i < 40; ++i) {
      const auto row = static_cast<size_t>(i);
      const Index seen = mask.visible(i, 40);
      CHECK(std::ssize(distinct[row]) == std::min<Index>(9, seen));
      CHECK(std::ssize(repeated[row]) <= std::min<Index>(9, seen));
      CHECK(std::is_sorted(distinct[row].begin(), distinct[row].end()));
      CHECK(distinct[row].back() < seen);
      CHECK(repeated[row].back() < seen);
    }
    CHECK(std::set(distinct.begin(), distinct.end()).size() > 30);  // each row has its own draw
  }
}

// Of 20 000 sets of 2 of 5 keys, with an error rate of 1e-3 over three seeds: the least effect is 1.5 % of a set's
// share.
TEST_CASE("all sets of different keys are drawn alike often", "[statistics]") {
  Scores scores;
  for (const std::uint64_t seed : base_seeds) {
    std::vector<std::vector<Index>> keys(100);
    const TestHead problem = gaussian_problem({.nq = 100, .nk = 5, .d = 2, .dv = 1}, 0.8);
    const Params params("methods", "sampled:replacement=false,s=2");
    std::map<std::vector<Index>, double> count;
    constexpr Index draws = 200;
    for (Index replicate = 0; replicate < draws; ++replicate) {
      const auto method = make_approximation<double>(
          {.shape = problem.shape, .params = params, .streams = Streams(seed), .replicate = replicate});
      Context context;
      method->pattern()->keys_of_rows(problem.head.view(), {}, 0, context, keys);
      for (const auto& set : keys) ++count[set];
    }
    CHECK(count.size() == 10);
    constexpr double all = 100 * draws;
    for (const auto& [set, hits] : count)
      scores.push_back({"a set of two", (hits / all - 0.1) / std::sqrt(0.1 * 0.9 / all)});
  }
  check_family(scores);
  check_found("a set 20 % too rare", {{"", -0.02 / std::sqrt(0.1 * 0.9 / 20000)}}, threshold(scores));
}

TEST_CASE("value norms are the probabilities, and a value of 0 is never drawn", "[unit]") {
  TestHead problem = square(12);
  problem.head.V.row(3).setZero();
  problem.head.V.row(7) *= 100;
  const auto method = drawn("sampled:law=value-norm,s=50", problem);
  const SamplingLaw law = sampled_rows(*method)->law(problem.head.view(), {}, 2);
  const Eigen::VectorXd norms = problem.head.V.rowwise().norm();
  for (Index j = 0; j < 12; ++j) CHECK(std::abs(law.p[static_cast<size_t>(j)] - norms(j) / norms.sum()) < tolerance);
  for (const auto& keys : keys_of("sampled:law=value-norm,s=50", problem))
    CHECK_FALSE(std::binary_search(keys.begin(), keys.end(), 3));
  Context context;
  const SampledRow stated = sampled_row(context, law, row_block(problem.head.Q, 2, 1), problem.head.K, problem.head.V);
  CHECK(stated.denominator_mean < 1);
}

TEST_CASE("laws have the probabilities that they are named after", "[unit]") {
  const TestHead problem = square(12);
  const auto softmax = drawn("softmax", problem);
  Matrix<double> A(12, 12);
  Context context;
  softmax->rows()->attention_rows(problem.head.view(), {}, 0, context, A);
  const Matrix<double> out = A * problem.head.V;
  const auto p_of = [&](const std::string& law) {
    return sampled_rows(*drawn("sampled:law=" + law, problem))->law(problem.head.view(), {}, 5).p;
  };
  double total = 0;
  for (Index j = 0; j < 12; ++j) total += A(5, j) * (problem.head.V.row(j) - out.row(5)).norm();
  for (Index j = 0; j < 12; ++j) {
    const auto key = static_cast<size_t>(j);
    CHECK(std::abs(p_of("uniform")[key] - 1.0 / 12) < tolerance);
    CHECK(std::abs(p_of("oracle")[key] - A(5, j)) < tolerance);
    CHECK(std::abs(p_of("optimal")[key] - A(5, j) * (problem.head.V.row(j) - out.row(5)).norm() / total) < tolerance);
  }
}

TEST_CASE("inputs at the edge give finite rows, and the exact one where every key gives it", "[unit]") {
  for (const auto& law : laws)
    for (const bool stratified : {false, true}) {
      const std::string spec = "sampled:s=5,law=" + law + (stratified ? ",stratified=true" : "");
      INFO(spec);
      TestHead zero_values = square(15), equal_values = square(15), equal_keys = square(15), one_key = square(15),
               large = square(15);
      zero_values.head.V.setZero();
      CHECK(output(spec, zero_values).isZero(0));
      equal_values.head.V.rowwise() = Eigen::RowVectorXd::LinSpaced(4, 1, 4).eval();
      CHECK(difference(output(spec, equal_values), equal_values.head.V) < tolerance);
      equal_keys.head.K.rowwise() = Eigen::RowVectorXd::Constant(6, 0.3).eval();
      CHECK(output(spec, equal_keys).allFinite());
      one_key.head.K.setZero();
      one_key.head.Q.setConstant(20);
      one_key.head.K.row(4).setConstant(20);  // a logit of 2400 over 0
      const Matrix<double> out = output(spec, one_key);
      CHECK(out.allFinite());
      if (law == "oracle") CHECK(difference(out, one_key.head.V.row(4).replicate(15, 1)) < tolerance);
      large.head.Q *= 100;
      large.head.K *= 100;
      CHECK(output(spec, large).allFinite());
      CHECK(attend(*draw_method<float>(Params("methods", spec), large.shape, large), large.head.cast<float>(), {})
                .allFinite());
      const TestHead narrow = gaussian_problem({.nq = 9, .nk = 9, .d = 1, .dv = 1}, 0.8);
      CHECK(output(spec, narrow).allFinite());
      // The first rows see no key, and one.
      const TestHead problem = square(15);
      const Matrix<double> few = output(spec, problem, {.causal = true, .offset = -1});
      CHECK(few.row(0).isZero(0));
      CHECK((few.row(1) - problem.head.V.row(0)).norm() < tolerance);
    }
}

TEST_CASE("values so large that squares overflow have norms", "[unit]") {
  TestHead problem = square(10);
  problem.head.V *= 1e200;
  CHECK(output("sampled:law=value-norm", problem).allFinite());
}

TEST_CASE("no token moves the rows before it, of any law", "[unit]") {
  const TestHead problem = square(30);
  const Mask mask{.causal = true};
  for (const auto& law : laws) {
    const std::string spec = "sampled:s=5,law=" + law;
    INFO(spec);
    const auto method = drawn(spec, problem, mask);
    const Matrix<double> before = attend(*method, problem.head, mask);
    for (const Index token : {1, 15, 16, 29}) {
      HeadData<double> moved = problem.head;
      moved.K.row(token).array() += 5;
      moved.V.row(token) *= -50;
      const Matrix<double> after = attend(*method, moved, mask);
      CHECK(identical(Matrix<double>(after.topRows(token)), Matrix<double>(before.topRows(token))));
    }
  }
}

TEST_CASE("the sums of a row are those that attend divides, at any first row", "[unit]") {
  const TestHead problem = square(30);
  const auto method = drawn("sampled:law=value-norm,s=7", problem);
  const Matrix<double> out = attend(*method, problem.head, {});
  Matrix<double> numerators(11, 4);
  std::vector<double> denominators(11), log_scale(11);
  Context context;
  sampled_rows(*method)->sums(problem.head.view(), {}, 17, context, numerators, denominators, log_scale);
  for (Index i = 0; i < 11; ++i)
    CHECK((numerators.row(i) / denominators[static_cast<size_t>(i)] - out.row(17 + i)).norm() < tolerance);
}

TEST_CASE("s out of range, and draws without replacement by weight, are refused with a spec that works", "[unit]") {
  CHECK_THROWS_AS(Params("methods", "sampled:s=0"), Misuse);
  CHECK_THROWS_AS(Params("methods", "sampled:s=2000000"), Misuse);
  CHECK_THROWS_AS(Params("methods", "sampled:law=best"), Misuse);
  for (const char* spec : {"sampled:law=oracle,replacement=false", "sampled:stratified=true,replacement=false"}) {
    const Params params("methods", spec);
    CHECK_THROWS_WITH(find<MethodEntry>("sampled").check(params),
                      ContainsSubstring(params.spec()) && ContainsSubstring("sampled:replacement=false"));
  }
}

}  // namespace attnbench::sampling_test
