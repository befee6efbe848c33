// Heads with smaller keys: the logits that are left are the best of their rank.
#include "harness/inputs/key_directions.hpp"

#include <Eigen/QR>
#include <cmath>
#include <numeric>

#include "harness/errors/error.hpp"
#include "harness/inputs/input.hpp"
#include "harness/linalg/lapack.hpp"
#include "harness/random/streams.hpp"
#include "tests/catch.hpp"

namespace attnbench::key_directions_test {

namespace {

Matrix<double> normal(const std::string& name, Index rows, Index columns) {
  auto generator = Streams(3).stream("key directions", name);
  return standard_normal(generator, rows, columns);
}

// Uncorrelated columns of very different sizes, then mixed: directions other than the axes.
Matrix<double> skewed(const std::string& name, Index rows, Index columns) {
  Matrix<double> X = normal(name, rows, columns);
  for (Index j = 0; j < columns; ++j) X.col(j) *= std::pow(0.5, static_cast<double>(j));
  return X * normal(name + " mixed", columns, columns);
}

Matrix<double> logits(const HeadData<double>& head) { return head.Q * head.K.transpose(); }

constexpr Index tokens = 1024;  // the whole text, over which the directions are the best

HeadData<double> model_head(const std::string& options, Index d, Purpose purpose = Purpose::measured,
                            Index replicate = 0) {
  const Params params("inputs", "model:layer=1,head=2" + options);
  return draw_head(params, {.nq = tokens,
                            .nk = tokens,
                            .d = d,
                            .dv = 64,
                            .streams = Streams(1),
                            .head = 0,
                            .replicate = replicate,
                            .purpose = purpose});
}

}  // namespace

TEST_CASE("the directions of keys leave the logits of least error among those of their rank", "[unit]") {
  const Matrix<double> Q = skewed("Q", 70, 12), K = skewed("K", 50, 12), S = Q * K.transpose();
  const auto sigma = singular_values(S);
  for (const Index size : {1, 5, 12}) {
    const auto [of_queries, of_keys] = best_directions(Q, K, size);
    REQUIRE(of_queries.cols() == size);
    const Matrix<double> smaller_Q = Q * of_queries, smaller_K = K * of_keys;
    const double least = std::sqrt(std::inner_product(sigma.begin() + size, sigma.end(), sigma.begin() + size, 0.0));
    CHECK((S - smaller_Q * smaller_K.transpose()).norm() == Approx(least).epsilon(1e-8).margin(1e-12 * sigma[0]));
    for (Index k = 0; k < size; ++k) CHECK(smaller_Q.col(k).norm() == Approx(smaller_K.col(k).norm()).epsilon(1e-9));
  }
}

TEST_CASE("logits of a lower rank than the key size asked for are refused", "[unit]") {
  const Matrix<double> Q = normal("Q", 20, 6);
  Matrix<double> K = normal("K", 30, 6);
  K.rightCols(4).setZero();
  CHECK(best_directions(Q, K, 2).of_keys.cols() == 2);
  CHECK_THROWS_AS(best_directions(Q, K, 3), Misuse);
}

TEST_CASE("model: the larger key_size, the nearer to the logits of the head, and all of it has them", "[unit]") {
  const auto captured = model_head("", 64), turned = model_head(",key_size=64", 64);
  const auto missed = [&](const std::string& options, Index d) {
    return (logits(model_head(options, d)) - logits(captured)).norm() / logits(captured).norm();
  };
  CHECK(missed(",key_size=8", 8) < 1);
  CHECK(missed(",key_size=32", 32) < missed(",key_size=8", 8));
  CHECK(missed(",key_size=32", 32) > 1e-3);
  CHECK(missed(",key_size=64", 64) < 1e-11);
  CHECK((turned.Q - captured.Q).norm() > 0.1 * captured.Q.norm());  // in another basis
  CHECK(turned.V == captured.V);
}

TEST_CASE("model: what a method learns from has the directions of what is measured", "[unit]") {
  const auto captured = model_head("", 64, Purpose::calibration),
             smaller = model_head(",key_size=8", 8, Purpose::calibration);
  const auto measured = model_head("", 64), measured_smaller = model_head(",key_size=8", 8);
  // The map of the keys, found from the measured head by least squares.
  const Matrix<double> map = measured.K.householderQr().solve(measured_smaller.K);
  CHECK((captured.K * map - smaller.K).norm() < 1e-8 * smaller.K.norm());
}

TEST_CASE("model: smaller keys are those of the replicate's own text", "[unit]") {
  const auto whole = model_head("", 64, Purpose::measured, 2), turned = model_head(",key_size=64", 64, {}, 2),
             smaller = model_head(",key_size=8", 8, {}, 2);
  CHECK((logits(turned) - logits(whole)).norm() < 1e-11 * logits(whole).norm());
  // No 8 dimensions of another text's choice would leave as little.
  const auto sigma = singular_values(logits(whole));
  const double least = std::sqrt(std::inner_product(sigma.begin() + 8, sigma.end(), sigma.begin() + 8, 0.0));
  CHECK((logits(smaller) - logits(whole)).norm() == Approx(least).epsilon(1e-8));
}

TEST_CASE("model: keys cannot be larger than the heads have them", "[unit]") {
  CHECK_THROWS_AS(model_head(",key_size=65", 65), Misuse);
  CHECK_THROWS_AS(model_head(",key_size=8", 64), Misuse);
}

}  // namespace attnbench::key_directions_test
