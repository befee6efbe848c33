// Recurrences where the answer is known: a decay is ALiBi, the delta rule recalls, a regression finds the map behind
// its values, and a chunk is its tokens one after another. methods.md V.
#include <cmath>

#include "harness/core/needs.hpp"
#include "tests/cases.hpp"
#include "tests/misuse.hpp"

namespace attnbench::recurrences_test {

namespace {

constexpr double tolerance = 1e-12;
constexpr Mask causal{.causal = true};

TestHead gaussian(Index n, Index d = 8) { return gaussian_problem({.nq = n, .nk = n, .d = d, .dv = 5}, 0.8); }

Matrix<double> out_of(const std::string& spec, const TestHead& problem, const Tensors* state = nullptr) {
  return attend(*drawn(spec, problem, causal, state), problem.head, causal);
}

double distance(const Matrix<double>& a, const Matrix<double>& b) {
  return (a - b).cwiseAbs().maxCoeff() / std::max(1.0, b.cwiseAbs().maxCoeff());
}

void give(TestHead& problem, const std::string& name, double value) {
  problem.head.extra.at(name).numbers.setConstant(value);
}

// A head whose keys are rows of an orthogonal matrix, n at most d, and whose queries are its keys.
TestHead orthonormal(Index n, Index d) {
  TestHead problem = gaussian(n, d);
  Generator generator(test_seed);
  problem.head.K = haar_orthogonal(generator, d).topRows(n);
  problem.head.Q = problem.head.K;
  return problem;
}

}  // namespace

TEST_CASE("a decay is ALiBi with its slope on the products of queries and keys", "[unit]") {
  const TestHead problem = gaussian(150);  // three chunks: the state before the third has faded
  const auto& head = problem.head;
  Matrix<double> A = head.Q * head.K.transpose();
  for (Index i = 0; i < 150; ++i)
    for (Index j = 0; j < 150; ++j) A(i, j) *= j <= i ? std::exp(-0.3 * static_cast<double>(i - j)) : 0;
  CHECK(distance(out_of("retnet:slope=0.3", problem), A * head.V) < tolerance);
}

TEST_CASE("head h of RetNet keeps 1 - 2^(-5 - h) of its state", "[unit]") {
  TestHead problem = gaussian(2);
  problem.shape.mask = causal;
  problem.head.V.row(1).setZero();
  for (const Index h : {0, 3}) {
    const auto method = make_approximation<double>(
        {.shape = problem.shape, .params = Params("methods", "retnet"), .streams = Streams(test_seed), .head = h});
    const double weight = problem.head.Q.row(1).dot(problem.head.K.row(0));
    const double gamma = 1 - std::exp2(-5 - static_cast<double>(h));
    CHECK(distance(attend(*method, problem.head, causal).row(1), gamma * weight * problem.head.V.row(0)) < tolerance);
  }
}

TEST_CASE("a chunk of tokens is the tokens one after another", "[unit]") {
  const TestHead problem = gaussian(150);
  for (const std::string method : {"retnet", "gla", "mamba-2", "deltanet", "gated-deltanet", "log-linear"})
    for (const std::string gates : {"", "gates=given,"}) {
      if (!gates.empty() && (method == "retnet" || method == "log-linear")) continue;
      const std::string spec = method + ":" + gates + "chunk=";
      INFO(spec);
      const Matrix<double> one = out_of(spec + "1", problem);
      CHECK(one.row(149).cwiseAbs().maxCoeff() > 1e-3);
      for (const char* chunk : {"16", "64", "256"}) CHECK(distance(out_of(spec + chunk, problem), one) < tolerance);
    }
}

TEST_CASE("the delta rule with beta = 1 recalls the value of an orthonormal key, the last one written", "[unit]") {
  TestHead problem = orthonormal(16, 16);
  give(problem, "write", 1);
  CHECK(distance(out_of("deltanet:gates=given", problem), problem.head.V) < tolerance);

  problem.head.K.row(9) = problem.head.K.row(4);  // written twice
  problem.head.Q.row(15) = problem.head.K.row(4);
  const Matrix<double> last = problem.head.V.row(9), sum = problem.head.V.row(4) + last;
  CHECK(distance(out_of("deltanet:gates=given", problem).row(15), last) < tolerance);
  CHECK(distance(out_of("retnet:slope=0", problem).row(15), sum) < tolerance);  // plain linear attention adds
}

TEST_CASE("the delta rule with beta below 1 keeps the rest of what was there", "[unit]") {
  TestHead problem = orthonormal(2, 4);
  problem.head.K.row(1) = problem.head.Q.row(1) = problem.head.K.row(0);
  give(problem, "write", 0.25);
  const Matrix<double> first = 0.25 * problem.head.V.row(0), second = 0.75 * first + 0.25 * problem.head.V.row(1);
  CHECK(distance(out_of("deltanet:gates=given", problem).row(1), second) < tolerance);
  give(problem, "keep", 0.5);
  const Matrix<double> faded = 0.75 * 0.5 * first + 0.25 * problem.head.V.row(1);
  CHECK(distance(out_of("gated-deltanet:gates=given", problem).row(1), faded) < tolerance);
}

TEST_CASE("keys and queries of the delta rule have unit length", "[unit]") {
  TestHead problem = gaussian(40), longer = problem;
  longer.head.K *= 3;
  longer.head.Q *= 0.1;
  for (const char* spec : {"deltanet:gates=given", "gated-deltanet:gates=given", "mesanet:gates=given"})
    CHECK(distance(out_of(spec, longer), out_of(spec, problem)) < tolerance);
}

TEST_CASE("a gate of 0 forgets all that was before, to the last bit, and gates of 1 forget nothing", "[unit]") {
  TestHead problem = gaussian(80);
  for (const auto& [method, gate] : std::vector<std::pair<std::string, std::string>>{
           {"gla", "keep_channels"}, {"mamba-2", "keep"}, {"gated-deltanet", "keep"}}) {
    INFO(method);
    const std::string spec = method + ":gates=given,chunk=64";
    TestHead forgetful = problem;
    forgetful.head.extra.at(gate).numbers.row(30).setZero();
    TestHead other = forgetful;
    other.head.V.topRows(30) *= -5;
    CHECK(identical<double>(out_of(spec, forgetful).bottomRows(50), out_of(spec, other).bottomRows(50)));

    give(problem, gate, 1);
    give(problem, "write", 1);
    const Matrix<double> kept = out_of(spec, problem);
    CHECK(distance(kept, out_of(method == "gated-deltanet" ? "deltanet:gates=given" : "retnet:slope=0", problem)) <
          tolerance);
  }
}

TEST_CASE("ridge regression finds the linear map behind the values", "[unit]") {
  TestHead problem = gaussian(200, 6);
  Generator generator(test_seed);
  const Matrix<double> map = standard_normal(generator, 6, 5);
  problem.head.K.rowwise().normalize();
  problem.head.Q.rowwise().normalize();
  problem.head.V = problem.head.K * map;
  give(problem, "keep", 1);
  give(problem, "write", 1);
  const Matrix<double> want = problem.head.Q * map;
  CHECK(distance(out_of("mesanet:gates=given,ridge=1e-06", problem).bottomRows(100), want.bottomRows(100)) < 1e-6);
  // One direction alone: the ridge takes its share, 1 / (1 + ridge).
  TestHead single = orthonormal(1, 4);
  give(single, "keep", 1);
  give(single, "write", 1);
  CHECK(distance(out_of("mesanet:gates=given,ridge=3", single), single.head.V / 4) < tolerance);
}

TEST_CASE("log-linear attention with equal levels is linear attention, and a level weighs its tokens alone", "[unit]") {
  const TestHead problem = gaussian(70);
  Tensors state{{"W", Matrix<double>::Zero(64, 8)}};
  CHECK(distance(out_of("log-linear", problem, &state), out_of("retnet:slope=0", problem)) < tolerance);

  // Row 37 = 100101 in binary: level 3 holds tokens 32 to 35, whose third digit differs.
  state.at("W").row(3) = 5 * problem.head.Q.row(37);
  const double z = 5 * problem.head.Q.row(37).squaredNorm(), lambda = std::log1p(std::exp(z)) / std::log(2.0);
  Matrix<double> A = problem.head.Q.row(37) * problem.head.K.transpose();
  A.rightCols(32).setZero();
  A.middleCols(32, 4) *= lambda;
  for (const char* spec : {"log-linear:chunk=1", "log-linear:chunk=4", "log-linear"})
    CHECK(distance(out_of(spec, problem, &state).row(37), A * problem.head.V) < tolerance);
}

TEST_CASE("a decoder of a recurrence keeps one state, and one a level where there are levels", "[unit]") {
  const TestHead problem = gaussian(100);
  const auto bytes = [&](const std::string& spec, Index tokens) {
    const auto method = drawn(spec, problem, causal);
    const auto decoder = method->decoder(problem.shape);
    REQUIRE(decoder);
    Context context;
    decoder->prefill(HeadPart<double>::tokens(problem.head.view(), 0, tokens).view(), context);
    return decoder->bytes();
  };
  constexpr size_t state = sizeof(double) * 8 * 5;
  for (const char* spec : {"retnet", "gla", "mamba-2", "deltanet", "gated-deltanet"}) {
    CHECK(bytes(spec, 3) == state);
    CHECK(bytes(spec, 100) == state);
  }
  CHECK(bytes("mesanet", 100) == state + 8 * sizeof(double) * 8);
  CHECK(bytes("log-linear", 64) == state);
  CHECK(bytes("log-linear", 63) == 6 * state);
}

TEST_CASE("gates that are given are needed, and are refused outside their bounds", "[unit]") {
  CHECK(needs_of(Params("methods", "gla")).empty());
  REQUIRE(needs_of(Params("methods", "gla:gates=given")).size() == 1);
  CHECK(words_of(needs_of(Params("methods", "gla:gates=given")).front()) == "n x d");

  TestHead problem = gaussian(10);
  problem.head.extra.at("keep").numbers(3, 0) = 1.5;
  CHECK(contains(misuse_of([&] { out_of("mamba-2:gates=given", problem); }),
                 "'keep' is 1.5 in row 3, column 0; expected gates from 0 to 1"));
  problem.head.extra.at("write").numbers(2, 0) = -0.5;
  CHECK(contains(misuse_of([&] { out_of("deltanet:gates=given", problem); }),
                 "'write' is -0.5 in row 2, column 0; expected gates from 0 to 2"));
  CHECK(contains(misuse_of([&] { out_of("log-linear:chunk=48", problem); }), "expected a power of 2"));
}

}  // namespace attnbench::recurrences_test
