// The engine of rows with keys of their own, against the plain formula.
#include "approximations/sparse/gathered_softmax.hpp"

#include <cmath>
#include <limits>

#include "harness/random/streams.hpp"
#include "tests/catch.hpp"

namespace attnbench::gathered_softmax_test {

namespace {

constexpr Index rows = 9, nk = 5000, d = 24, dv = 20;  // a slab has 2048 of these keys, or 1024 in double

struct Problem {
  Matrix<double> Q, K, V;
  std::vector<WeighedKeys<double>> keys;
};

// Rows with keys in ascending order, in any order, several times, without weights, with weights 0, and without keys.
Problem problem() {
  Generator generator(3);
  Problem made{standard_normal(generator, rows, d) / 2, standard_normal(generator, nk, d),
               standard_normal(generator, nk, dv), std::vector<WeighedKeys<double>>(rows)};
  for (Index i = 0; i < rows; ++i) {
    auto& [keys, log_weights] = made.keys[static_cast<size_t>(i)];
    if (i == 4) continue;
    for (Index t = 0; t < 300; ++t) {
      keys.push_back(i % 2 == 0 ? 16 * t : static_cast<Index>(generator() % nk));
      if (i > 2) log_weights.push_back(static_cast<double>(t % 7) - 3);
      if (i > 2 && t % 5 == 0) log_weights.back() = -std::numeric_limits<double>::infinity();
    }
  }
  // Row 7: all weights are 0. Row 8: the last slab has the largest logit by far, so that what came before is rescaled.
  for (double& weight : made.keys[7].log_weights) weight = -std::numeric_limits<double>::infinity();
  made.Q.row(8) = 3 * made.K.row(16 * 299);
  made.keys[8].log_weights[299] = 2;
  return made;
}

struct Sums {
  Matrix<double> numerators;
  std::vector<double> denominators;
};
Sums by_formula(const Problem& given) {
  Sums sums{Matrix<double>::Zero(rows, dv), std::vector<double>(rows, 0)};
  for (Index i = 0; i < rows; ++i) {
    const auto& [keys, log_weights] = given.keys[static_cast<size_t>(i)];
    for (size_t t = 0; t < keys.size(); ++t) {
      const double weight =
          std::exp(given.Q.row(i).dot(given.K.row(keys[t])) + (log_weights.empty() ? 0 : log_weights[t]));
      sums.numerators.row(i) += weight * given.V.row(keys[t]);
      sums.denominators[static_cast<size_t>(i)] += weight;
    }
  }
  return sums;
}

}  // namespace

TEMPLATE_TEST_CASE("sums over weighed keys equal the formula, whatever their order and number", "[unit]", float,
                   double) {
  using T = TestType;
  const double tolerance = sizeof(T) == 4 ? 2e-5 : 1e-12;
  const Problem given = problem();
  const Sums expected = by_formula(given);
  const Matrix<T> Q = given.Q.cast<T>(), K = given.K.cast<T>(), V = given.V.cast<T>();
  std::vector<WeighedKeys<T>> keys(rows);
  for (size_t i = 0; i < keys.size(); ++i) {
    keys[i].keys = given.keys[i].keys;
    keys[i].log_weights.assign(given.keys[i].log_weights.begin(), given.keys[i].log_weights.end());
  }
  Matrix<T> numerators = Matrix<T>::Constant(rows, dv, std::numeric_limits<T>::quiet_NaN());
  std::vector<T> denominators(rows, -1), log_scale(rows, -1);
  GatheredSums<T> sums;
  Context context;
  sums.add_up(context, Q, K, V, keys, numerators, denominators, log_scale);
  CHECK(context.work.flops == 2 * 300.0 * (8 * d + 7 * dv));  // row 7 reads no values
  CHECK(context.work.exps == 7 * 300.0);
  for (Index i = 0; i < rows; ++i) {
    const auto at = static_cast<size_t>(i);
    CAPTURE(i);
    const double scale = std::exp(static_cast<double>(log_scale[at])), size = std::max(1.0, expected.denominators[at]);
    CHECK(std::abs(static_cast<double>(denominators[at]) * scale - expected.denominators[at]) < tolerance * size);
    CHECK((numerators.row(i).template cast<double>() * scale - expected.numerators.row(i)).cwiseAbs().maxCoeff() <
          4 * tolerance * size);
  }
  for (const size_t empty : {4u, 7u}) CHECK((denominators[empty] == 0 && log_scale[empty] == 0));
  CHECK(denominators[8] < 1.1);  // relative to the largest weight
}

TEST_CASE("a NaN in a key makes its rows NaN and no other", "[unit]") {
  Problem given = problem();
  given.K(16 * 10, 3) = std::numeric_limits<double>::quiet_NaN();
  Matrix<double> numerators(rows, dv);
  std::vector<double> denominators(rows), log_scale(rows);
  GatheredSums<double> sums;
  Context context;
  sums.add_up(context, given.Q, given.K, given.V, given.keys, numerators, denominators, log_scale);
  for (Index i = 0; i < rows; ++i) {
    const auto& keys = given.keys[static_cast<size_t>(i)].keys;
    const bool sees = std::find(keys.begin(), keys.end(), 160) != keys.end();
    CHECK(std::isnan(denominators[static_cast<size_t>(i)]) == sees);
  }
}

TEST_CASE("normalised weights are softmax with the logarithms of the weights", "[unit]") {
  const Problem given = problem();
  Context context;
  for (const size_t i : {0u, 3u}) {
    const auto weights =
        normalised_weights<double>(context, row_block(given.Q, static_cast<Index>(i), 1), given.K, given.keys[i]);
    const auto& [keys, log_weights] = given.keys[i];
    const double sum = by_formula(given).denominators[i];
    for (size_t t = 0; t < keys.size(); ++t) {
      const double logit = given.Q.row(static_cast<Index>(i)).dot(given.K.row(keys[t]));
      CHECK(std::abs(weights(0, static_cast<Index>(t)) -
                     std::exp(logit + (log_weights.empty() ? 0 : log_weights[t])) / sum) < 1e-12);
    }
  }
}

}  // namespace attnbench::gathered_softmax_test
