// The two engines, exact softmax and linear attention, at sizes around every edge of their blocks, and what is known of
// their matrices (methods.md J 28, 52, 54, 55).
#include <cmath>
#include <numeric>

#include "approximations/linear/linear_attention.hpp"
#include "harness/linalg/lapack.hpp"
#include "tests/cases.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/oracle.hpp"

namespace attnbench::engines_test {

namespace {

constexpr double tolerance = 1e-12;

std::unique_ptr<Approximation<double>> method(const std::string& spec, const TestHead& problem, Mask mask = {}) {
  Shape shape = problem.shape;
  shape.mask = mask;
  return draw_method<double>(Params("methods", spec), shape, problem);
}

double difference(const Matrix<double>& a, const Matrix<double>& b) { return (a - b).cwiseAbs().maxCoeff(); }

// The causal attention matrix: attend with V = I.
Matrix<double> causal_matrix(const Approximation<double>& attention, const HeadData<double>& head) {
  const Index n = head.K.rows();
  return attend(attention, {head.Q, head.K, Matrix<double>::Identity(n, n)}, {.causal = true});
}

}  // namespace

TEST_CASE("the engines equal the masked dense form at every edge of their blocks", "[second-paths]") {
  for (const Index n : {1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129, 191, 193, 255, 256, 257, 511, 513, 1025}) {
    const TestHead problem = gaussian_problem({.nq = n, .nk = n, .d = 6, .dv = 5}, 0.8);
    for (const char* spec : {"softmax", "softmax:form=materialised", "rbf", "linear", "performer:m=24"})
      for (const Mask mask : {Mask{}, Mask{.causal = true}, Mask{.causal = true, .offset = -1},
                              Mask{.causal = true, .offset = 70}, Mask{.keys = (n + 1) / 2}}) {
        INFO(spec << " at n=" << n << ", " << to_string(mask));
        const auto attention = method(spec, problem, mask);
        const auto want = oracle::attention(Params("methods", spec), attention->state(), problem.head, mask);
        CHECK(worst_error(attend(*attention, problem.head, mask), want.out, want.condition, 4) < tolerance);
      }
  }
}

TEST_CASE("a causal scan is right where the exponents of keys rise by hundreds, fall, and rise again", "[methods]") {
  // Chunks are cut wherever a key is far above what all rows of the chunk see. Positive features of long keys are
  // small: where the first key is the longest, later ones raise their scales, by far more than the 300 that are let
  // pass.
  const Mask mask{.causal = true};
  for (const double longest : {13, 40}) {
    TestHead problem = gaussian_problem({.nq = 200, .nk = 200, .d = 3, .dv = 2}, 1);
    for (Index j = 0; j < 200; ++j) {
      const double turn = 0.05 * static_cast<double>(j * j);
      problem.head.K.row(j) *= 1 + (longest - 1) * std::abs(longest == 13 ? std::sin(turn) : std::cos(turn));
    }
    for (const char* spec : {"performer:m=16", "performer:m=16,features=hyperbolic", "linear:features=exp"}) {
      INFO(spec);
      const auto attention = method(spec, problem, mask);
      const auto want = oracle::attention(Params("methods", spec), attention->state(), problem.head, mask);
      // Exponents reach 1000, and a dot product of that size rounds by as many times 1e-16.
      CHECK(worst_error(attend(*attention, problem.head, mask), want.out, want.condition, 4) < 100 * tolerance);
      const auto single = draw_method<float>(Params("methods", spec), problem.shape, problem);
      CHECK(attend(*single, problem.head.cast<float>(), mask).allFinite());
    }
  }
}

TEST_CASE("rbf attention is softmax of q.k - |k|^2/2", "[methods]") {
  const TestHead problem = gaussian_problem({.nq = 40, .nk = 50, .d = 5, .dv = 3}, 1);
  // One more channel, 1 for queries and -|k|^2/2 for keys, brings the bias into the logits.
  HeadData<double> widened = problem.head;
  widened.Q.conservativeResize(Eigen::NoChange, 6);
  widened.K.conservativeResize(Eigen::NoChange, 6);
  widened.Q.col(5).setOnes();
  widened.K.col(5) = -problem.head.K.rowwise().squaredNorm() / 2;
  for (const Mask mask : {Mask{}, Mask{.causal = true, .offset = 10}, Mask{.keys = 33}})
    CHECK(difference(attend(*method("rbf", problem, mask), problem.head, mask),
                     attend(*method("softmax", problem, mask), widened, mask)) < tolerance);
  HeadData<double> one_norm = problem.head;
  one_norm.K.rowwise().normalize();
  CHECK(difference(attend(*method("rbf", problem), one_norm, {}), attend(*method("softmax", problem), one_norm, {})) <
        tolerance);
}

TEST_CASE("a causal matrix of linear attention has full rank: its determinant is the product of its diagonal",
          "[methods]") {
  const TestHead problem = gaussian_problem({.nq = 30, .nk = 30, .d = 2, .dv = 3}, 0.8);
  const Matrix<double> A = causal_matrix(*method("linear", problem), problem.head);
  const double product = A.diagonal().prod();
  CHECK(A.diagonal().minCoeff() > 0);
  const auto sigma = singular_values(A);
  const double determinant = std::accumulate(sigma.begin(), sigma.end(), 1.0, std::multiplies<>());
  CHECK(std::abs(determinant / product - 1) < 1e-9);  // the least of 30 is known to 1e-16 of the largest
  CHECK(sigma.back() > 1e-14 * sigma.front());
  const Matrix<double> bidirectional =
      attend(*method("linear", problem), {problem.head.Q, problem.head.K, Matrix<double>::Identity(30, 30)}, {});
  const auto of_rank_two = singular_values(bidirectional);
  CHECK(of_rank_two[1] > 1e-12 * of_rank_two[0]);
  CHECK(of_rank_two[2] < 1e-12 * of_rank_two[0]);
}

TEST_CASE("constant features give the Cesaro matrix, whose inverse is bidiagonal", "[methods]") {
  constexpr Index n = 64;
  TestHead problem = gaussian_problem({.nq = n, .nk = n, .d = 4, .dv = 3}, 1);
  problem.head.Q.setZero();
  problem.head.K.setZero();
  const Matrix<double> A = causal_matrix(*method("linear", problem), problem.head);
  Matrix<double> inverse = Matrix<double>::Zero(n, n);
  for (Index i = 0; i < n; ++i) {
    inverse(i, i) = static_cast<double>(i + 1);
    if (i > 0) inverse(i, i - 1) = -static_cast<double>(i);
  }
  CHECK(difference(A * inverse, Matrix<double>::Identity(n, n)) < tolerance);
  CHECK(std::abs(singular_values(A).back() - 0.0084) < 5e-5);  // methods.md H
}

TEST_CASE("tiled softmax is the materialised one, also where a row's largest logit comes last", "[methods]") {
  TestHead problem = gaussian_problem({.nq = 70, .nk = 700, .d = 4, .dv = 3}, 1);
  for (Index j = 0; j < 700; ++j) problem.head.K.row(j) *= 0.05 * static_cast<double>(j);  // maxima rise in every tile
  for (const Mask mask : {Mask{}, Mask{.causal = true, .offset = 630}, Mask{.keys = 650}})
    CHECK(difference(attend(*method("softmax", problem, mask), problem.head, mask),
                     attend(*method("softmax:form=materialised", problem, mask), problem.head, mask)) <
          100 * tolerance);  // logits reach several hundreds
}

}  // namespace attnbench::engines_test
