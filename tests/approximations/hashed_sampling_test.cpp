// Drawn keys beside exact ones (methods.md S): hyper, kdeformer, magicpig and vattention.
#include <algorithm>
#include <cmath>
#include <set>

#include "harness/core/estimates.hpp"
#include "harness/linalg/lapack.hpp"
#include "tests/cases.hpp"
#include "tests/misuse.hpp"
#include "tests/oracle/oracle.hpp"
#include "tests/scores.hpp"

namespace attnbench::hashed_sampling_test {

namespace {

constexpr double tolerance = 1e-12;
// So small that every part of each method has something to do at 40 keys.
const std::vector<std::string> specs{"hyper:block=6,s=5,bits=3", "kdeformer:block=6,s=5,bits=3",
                                     "magicpig:bits=2,tables=5,sinks=2,window=2",
                                     "vattention:sinks=2,window=2,top=3,base=5,eps=0.3"};

TestHead square(Index n, Index d = 6) { return gaussian_problem({.nq = n, .nk = n, .d = d, .dv = 4}, 0.8); }

bool has_form(const std::string& spec, Shape shape, Mask mask) {
  const Params params("methods", spec);
  shape.mask = mask;
  return find<MethodEntry>(params.name()).claims(params, shape).no_form.empty();
}

Matrix<double> output(const std::string& spec, const TestHead& problem, Mask mask = {}, Index replicate = 0) {
  return attend(*drawn(spec, problem, mask, nullptr, replicate), problem.head, mask);
}

double difference(const Matrix<double>& a, const Matrix<double>& b) { return (a - b).cwiseAbs().maxCoeff(); }

// The weights of all rows, read off with V = I.
Matrix<double> weights(const std::string& spec, TestHead problem, Mask mask = {}) {
  problem.head.V = Matrix<double>::Identity(problem.shape.nk, problem.shape.nk);
  problem.shape.dv = problem.shape.nk;
  return output(spec, problem, mask);
}

}  // namespace

TEST_CASE("hashed and collided keys agree with their transcriptions, published switches included", "[second-paths]") {
  std::vector<std::string> all = specs;
  all.insert(all.end(),
             {"hyper:block=6,s=5,bits=3,mask_own=false", "hyper:block=6,s=5,bits=3,queries=sorted",
              "hyper:block=6,s=5,bits=3,queries=hash", "hyper:block=1,s=1,bits=9",
              "kdeformer:block=6,s=5,bits=3,probabilities=authors", "kdeformer:block=6,s=5,bits=3,maximum=false",
              "magicpig:bits=2,tables=5,collisions=1,sinks=2,window=2",
              "magicpig:bits=2,tables=5,epsilon=0.01,sinks=2,window=2",
              "magicpig:bits=2,tables=5,collisions=1,epsilon=0.01,sinks=2,window=2",
              "vattention:sinks=1,window=1,top=0,base=5,eps=0.4,quantile=one-sided",
              "vattention:sinks=1,window=1,top=0,base=5,eps=0.4,collapsed=true"});
  for (const auto& spec : all)
    for (const TestHead& problem :
         {square(40), square(41, 1), gaussian_problem({.nq = 9, .nk = 50, .d = 5, .dv = 3}, 0.8)})
      for (const Mask& mask : masks(problem.shape)) {
        if (!has_form(spec, problem.shape, mask)) continue;
        INFO(spec << ", " << problem.shape.nk << " keys, " << to_string(mask));
        const auto method = drawn(spec, problem, mask);
        const auto want = oracle::attention(Params("methods", spec), method->state(), problem.head, mask);
        CHECK(difference(attend(*method, problem.head, mask), want.out) < tolerance);
      }
}

// With V = I rows of the output are those of the weights; kdeformer's draws depend on V.
TEST_CASE("a row gives weight to the keys of its pattern and to no others", "[unit]") {
  TestHead problem = square(40);
  problem.head.V = Matrix<double>::Identity(40, 40);
  problem.shape.dv = 40;
  for (const auto& spec : specs)
    for (const Mask& mask : masks(problem.shape)) {
      if (!has_form(spec, problem.shape, mask)) continue;
      INFO(spec << ", " << to_string(mask));
      const Matrix<double> A = output(spec, problem, mask);
      std::vector<std::vector<Index>> keys(30);
      Context context;
      drawn(spec, problem, mask)->pattern()->keys_of_rows(problem.head.view(), mask, 10, context, keys);
      for (Index i = 0; i < 30; ++i) {
        std::vector<Index> weighed;
        for (Index j = 0; j < 40; ++j)
          if (A(10 + i, j) > 0) weighed.push_back(j);
        CHECK(keys[static_cast<size_t>(i)] == weighed);
      }
    }
}

TEST_CASE("one block, as many draws as keys, a full window and a small eps give softmax", "[unit]") {
  const TestHead problem = square(40);
  const Mask causal{.causal = true};
  const Matrix<double> exact = output("softmax", problem), below = output("softmax", problem, causal);
  for (const char* spec :
       {"hyper:block=40,s=1", "hyper:block=4,s=40", "hyper:block=4,s=1000", "kdeformer:block=40,s=1",
        "kdeformer:block=4,s=40", "magicpig:window=39", "magicpig:sinks=40,window=0", "vattention:top=40,base=2",
        "vattention:sinks=1,window=0,top=0,base=20,eps=0.000001", "vattention:sinks=1,window=0,top=0,base=39"}) {
    INFO(spec);
    CHECK(difference(output(spec, problem), exact) < tolerance);
    if (has_form(spec, problem.shape, causal)) CHECK(difference(output(spec, problem, causal), below) < tolerance);
  }
  for (const auto& spec : specs) CHECK(difference(output(spec, problem), exact) > 1e-3);
}

// Keys and queries of two opposite directions, each with half of the keys. Any hash tells them apart, and logits of
// +-50 leave nothing for draws of the other direction.
TEST_CASE("blocks are those of the hash: opposite keys are in other blocks", "[unit]") {
  TestHead problem = square(16, 3);
  const Eigen::RowVector3d direction(5, 4, 3);
  Matrix<double> mean = Matrix<double>::Zero(2, 4);
  for (Index i = 0; i < 16; ++i) {
    problem.head.Q.row(i) = (i % 2 == 0 ? 1 : -1) * direction;
    problem.head.K.row(i) = problem.head.Q.row(i);
    mean.row(i % 2) += problem.head.V.row(i) / 8;
  }
  for (const char* spec : {"hyper:block=8,s=2,bits=1", "hyper:block=8,s=2,bits=1,queries=hash",
                           "kdeformer:block=8,s=2,bits=5", "hyper:block=8,s=2,bits=5"}) {
    INFO(spec);
    const Matrix<double> out = output(spec, problem);
    for (Index i = 0; i < 16; ++i) CHECK((out.row(i) - mean.row(i % 2)).norm() < tolerance);
  }
}

TEST_CASE("all queries share the drawn keys, and each block has at most `block` keys", "[unit]") {
  const TestHead problem = square(40);
  const Matrix<double> A = weights("hyper:block=6,s=4,bits=3", problem);
  const auto method = drawn("hyper:block=6,s=4,bits=3", problem);
  std::set<Index> drawn_keys;
  for (Index i = 0; i < 40; ++i) {
    const SamplingLaw law = sampled_rows(*method)->law(problem.head.view(), {}, i);
    const auto own = std::count(law.exact.begin(), law.exact.end(), true);
    CHECK((own == 5 || own == 6));
    for (Index j = 0; j < 40; ++j) {
      if (A(i, j) > 0 && !law.adds_exactly(j)) drawn_keys.insert(j);
      if (law.adds_exactly(j)) CHECK(A(i, j) > 0);
    }
  }
  CHECK(drawn_keys.size() <= 4);
  CHECK(drawn_keys.size() >= 2);
}

TEST_CASE("KDEformer draws by squared norms of values over |V|^2, plus 1/n, at any scale of V", "[unit]") {
  TestHead problem = square(40);
  problem.head.V.row(7) *= 30;
  const std::string spec = "kdeformer:block=6,s=5";
  const auto p_of = [&](const TestHead& head) {
    return sampled_rows(*drawn(spec, head))->law(head.head.view(), {}, 3).p;
  };
  const auto p = p_of(problem);
  const double norm = singular_values(problem.head.V).front();
  Eigen::VectorXd wanted = problem.head.V.rowwise().squaredNorm() / (norm * norm);
  wanted.array() += 1.0 / 40;
  wanted /= wanted.sum();
  for (Index j = 0; j < 40; ++j) CHECK(std::abs(p[static_cast<size_t>(j)] - wanted[j]) < tolerance);
  TestHead scaled = problem;
  scaled.head.V *= 1024;
  CHECK(p_of(scaled) == p);
  scaled.head.V *= 1e150;
  CHECK(output(spec, scaled).allFinite());
}

TEST_CASE("no token moves the rows before it by a bit, and later queries move sorted blocks", "[unit]") {
  const TestHead problem = square(50);
  const Mask mask{.causal = true};
  const auto earlier_rows_kept = [&](const std::string& spec, Index token) {
    const auto method = drawn(spec, problem, mask);
    HeadData<double> moved = problem.head;
    moved.Q.row(token) *= -30;
    moved.K.row(token).array() += 5;
    moved.V.row(token) *= -50;
    return identical(Matrix<double>(attend(*method, moved, mask).topRows(token)),
                     Matrix<double>(attend(*method, problem.head, mask).topRows(token)));
  };
  bool sorted_kept = true;
  for (const Index token : {1, 13, 24, 25, 26, 38, 49}) {
    for (const auto& spec : specs) {
      INFO(spec << ", token " << token);
      if (has_form(spec, problem.shape, mask)) CHECK(earlier_rows_kept(spec, token));
    }
    sorted_kept = sorted_kept && earlier_rows_kept("hyper:block=6,s=5,bits=3,queries=sorted", token);
  }
  CHECK_FALSE(sorted_kept);
}

TEST_CASE("edges of hashed and collided keys give finite rows, and the exact one where every key gives it", "[unit]") {
  for (const auto& spec : specs) {
    INFO(spec);
    TestHead zero_values = square(30), equal_values = square(30), equal_keys = square(30), zeros = square(30),
             one_key = square(30), parallel = square(30), large = square(30);
    zero_values.head.V.setZero();
    CHECK(output(spec, zero_values).isZero(0));
    equal_values.head.V.rowwise() = Eigen::RowVectorXd::LinSpaced(4, 1, 4).eval();
    CHECK(difference(output(spec, equal_values), equal_values.head.V) < tolerance);
    equal_keys.head.K.rowwise() = Eigen::RowVectorXd::Constant(6, 0.3).eval();
    CHECK(output(spec, equal_keys).allFinite());
    zeros.head.Q.setZero();
    zeros.head.K.setZero();
    CHECK(output(spec, zeros).allFinite());
    one_key.head.K.setZero();
    one_key.head.Q.setConstant(20);
    one_key.head.K.row(0).setConstant(20);  // a logit of 2400 over 0
    CHECK(output(spec, one_key).allFinite());
    for (Index i = 0; i < 30; ++i) {
      parallel.head.Q.row(i) = Eigen::RowVectorXd::LinSpaced(6, 0.1, 0.7);
      parallel.head.K.row(i) = (static_cast<double>(i % 3) - 1.1) * parallel.head.Q.row(i);
    }
    CHECK(output(spec, parallel).allFinite());
    large.head.Q *= 100;
    large.head.K *= 100;
    CHECK(output(spec, large).allFinite());
    CHECK(attend(*draw_method<float>(Params("methods", spec), large.shape, large), large.head.cast<float>(), {})
              .allFinite());
    for (const Index n : {1, 2, 5, 30}) CHECK(output(spec, square(n, 1)).allFinite());
    // The first rows see no key, and one.
    const TestHead problem = square(30);
    const Mask few{.causal = true, .offset = -1};
    if (!has_form(spec, problem.shape, few)) continue;
    const Matrix<double> out = output(spec, problem, few);
    CHECK(out.row(0).isZero(0));
    CHECK((out.row(1) - problem.head.V.row(0)).norm() < tolerance);
  }
}

// The angle of 60 degrees with 2 signs collides with probability 4/9 in a table. Over 1500 draws of each of three
// seeds, with an error rate of 1e-3, the least effect is 0.06; at least one collision instead of two is one of 0.27.
TEST_CASE("a key at a known angle is drawn with the probability of two collisions", "[statistics]") {
  Scores scores;
  constexpr double tables = 4, p = 4.0 / 9;
  const double once = tables * p * std::pow(1 - p, tables - 1), never = std::pow(1 - p, tables);
  const double wanted = 1 - once - never;
  TestHead problem = gaussian_problem({.nq = 1, .nk = 4, .d = 2, .dv = 1}, 1);
  // Centred keys; the last is at 60 degrees from the query. Row 0 sees key 0 as a sink.
  problem.head.Q << 1, 0;
  problem.head.K << -0.5, -std::sqrt(0.75), 3, 1, -3, -1, 0.5, std::sqrt(0.75);
  problem.head.V << 0, 0, 0, 1;
  const Params params("methods", "magicpig:bits=2,tables=4,sinks=1,window=0");
  const double law = sampled_rows(*drawn(params.spec(), problem))->law(problem.head.view(), {}, 0).p[3];
  CHECK(std::abs(law - wanted) < tolerance);
  constexpr Index draws = 1500;
  for (const std::uint64_t seed : base_seeds) {
    double hits = 0;
    for (Index replicate = 0; replicate < draws; ++replicate) {
      const auto method = make_approximation<double>(
          {.shape = problem.shape, .params = params, .streams = Streams(seed), .replicate = replicate});
      hits += attend(*method, problem.head, {})(0, 0) > 0;
    }
    scores.push_back({"drawn", (hits / draws - wanted) / std::sqrt(wanted * (1 - wanted) / draws)});
  }
  check_family(scores);
  check_found("one collision is enough", {{"", once / std::sqrt(wanted * (1 - wanted) / draws)}}, threshold(scores));
}

// Of 1200 rows, with an error rate of 1e-3 over both quantiles. sigma is estimated from 400 keys, whose error moves the
// rates by less than 0.01; the least effect is 0.05, and the one-sided quantile is one of 0.2.
TEST_CASE("a promised denominator fails as often as delta, and twice as often by the one-sided quantile",
          "[statistics]") {
  constexpr Index rows = 1200;
  constexpr double delta = 0.2, eps = 0.05;
  const TestHead problem = gaussian_problem({.nq = rows, .nk = 6000, .d = 8, .dv = 1}, 0.45);
  const auto failures = [&](const std::string& quantile) {
    const auto method =
        drawn("vattention:eps=0.05,delta=0.2,sinks=1,window=0,top=0,base=400,quantile=" + quantile, problem);
    Matrix<double> numerators(rows, 1);
    std::vector<double> denominators(rows), log_scale(rows);
    Context context;
    sampled_rows(*method)->sums(problem.head.view(), {}, 0, context, numerators, denominators, log_scale);
    double count = 0;
    for (Index i = 0; i < rows; ++i) {
      const double exact = (problem.head.Q.row(i) * problem.head.K.transpose()).array().exp().sum();
      const auto row = static_cast<size_t>(i);
      count += std::abs(denominators[row] * std::exp(log_scale[row]) / exact - 1) > eps;
    }
    return count / rows;
  };
  const auto error = [](double rate) { return std::sqrt(rate * (1 - rate) / rows); };
  const double two_sided = failures("two-sided"), one_sided = failures("one-sided");
  INFO(two_sided << " and " << one_sided);
  CHECK(std::abs(two_sided - delta) < 3.3 * error(delta) + 0.01);
  CHECK(std::abs(one_sided - 2 * delta) < 3.3 * error(2 * delta) + 0.01);
}

// A later query is in the hashed order of its part: if it moves, a chunk of earlier ones has another size. A product of
// one query, or with one column of values, has other bits than one of two.
TEST_CASE("a later query that hashes elsewhere leaves earlier rows as they are, to the last bit", "[second-paths]") {
  for (const char* spec : {"hyper:block=4,s=6", "hyper:block=4,s=6,queries=hash"})
    for (const Index dv : {1, 3})
      for (std::uint64_t seed = 0; seed < 40; ++seed) {
        TestHead problem = gaussian_problem({.nq = 65, .nk = 65, .d = 16, .dv = dv}, 1);
        Generator generator = Streams(seed).stream("later queries");
        for (auto* X : {&problem.head.Q, &problem.head.K, &problem.head.V})
          *X = standard_normal(generator, X->rows(), X->cols());
        const Mask mask{.causal = true, .keys = 44};
        const Matrix<double> before = output(spec, problem, mask);
        problem.head.Q.row(43).array() += 1e6;
        problem.head.K.row(43).array() += 1e6;
        INFO(spec << ", dv = " << dv << ", seed " << seed);
        CHECK((output(spec, problem, mask).topRows(43).array() == before.topRows(43).array()).all());
      }
}

TEST_CASE("budgets out of range are refused with what was expected", "[unit]") {
  for (const char* spec : {"vattention:eps=0", "vattention:eps=1", "vattention:delta=0", "vattention:delta=1.5",
                           "vattention:base=1", "vattention:sinks=0", "magicpig:sinks=0", "magicpig:tables=1",
                           "magicpig:bits=17", "hyper:s=0", "hyper:block=0", "hyper:bits=25", "kdeformer:bits=0"}) {
    INFO(spec);
    CHECK_THROWS_AS(Params("methods", spec), Misuse);
  }
}

}  // namespace attnbench::hashed_sampling_test
