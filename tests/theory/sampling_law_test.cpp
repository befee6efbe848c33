// Closed forms of sampled rows against sums over all outcomes of the draws, which are exact: no test here is
// statistical.
#include "harness/theory/sampling_law.hpp"

#include <cmath>
#include <functional>

#include "harness/random/streams.hpp"
#include "tests/catch.hpp"

namespace attnbench::sampling_law_test {

namespace {

constexpr double tolerance = 1e-12;
using Draws = SamplingLaw::Draws;
using Row = Eigen::RowVectorXd;

struct SmallHead {
  explicit SmallHead(Index n) {
    Generator generator = Streams(3).stream("sampling law", n);
    q = standard_normal(generator, 1, 3);
    K = standard_normal(generator, n, 3);
    V = standard_normal(generator, n, 2);
    a = (q * K.transpose()).array().exp();
    a /= a.sum();
    output = a * V;
  }
  Matrix<double> q, K, V, a;  // a: the softmax row, 1 x n
  Row output;
};

SampledRow theory(const SmallHead& head, const SamplingLaw& law) {
  Context context;
  return sampled_row(context, law, head.q, head.K, head.V);
}

// Calls body(key of each draw, probability) for every sequence of s keys.
void for_sequences(const std::vector<std::vector<double>>& probabilities,
                   const std::function<void(const std::vector<Index>&, double)>& body) {
  std::vector<Index> keys;
  const std::function<void(double)> extend = [&](double probability) {
    if (keys.size() == probabilities.size()) return body(keys, probability);
    const auto& of_draw = probabilities[keys.size()];
    for (size_t j = 0; j < of_draw.size(); ++j) {
      if (of_draw[j] == 0) continue;
      keys.push_back(static_cast<Index>(j));
      extend(probability * of_draw[j]);
      keys.pop_back();
    }
  };
  extend(1);
}

// The moments of the sums over all sequences of draws, where draw t has probabilities[t]. Exact keys are added once,
// and draws of them add nothing.
struct Enumerated {
  double denominator_mean = 0, denominator_variance = 0, numerator_variance = 0, row_squared_error = 0;
  Row numerator_mean = Row::Zero(2), row_mean = Row::Zero(2);

  Enumerated(const SmallHead& head, const std::vector<double>& p, const std::vector<std::vector<double>>& probabilities,
             const std::vector<bool>& exact = {}) {
    double squared_denominator = 0, squared_numerator = 0;
    for_sequences(probabilities, [&](const std::vector<Index>& keys, double probability) {
      double denominator = 0;
      Row numerator = Row::Zero(2);
      for (size_t j = 0; j < exact.size(); ++j)
        if (exact[j]) {
          const auto key = static_cast<Index>(j);
          denominator += head.a(0, key);
          numerator += head.a(0, key) * head.V.row(key);
        }
      for (const Index j : keys) {
        if (!exact.empty() && exact[static_cast<size_t>(j)]) continue;
        const double weight = head.a(0, j) / (static_cast<double>(keys.size()) * p[static_cast<size_t>(j)]);
        denominator += weight;
        numerator += weight * head.V.row(j);
      }
      denominator_mean += probability * denominator;
      numerator_mean += probability * numerator;
      row_mean += probability * numerator / denominator;
      squared_denominator += probability * denominator * denominator;
      squared_numerator += probability * numerator.squaredNorm();
      row_squared_error += probability * (numerator / denominator - head.output).squaredNorm();
    });
    denominator_variance = squared_denominator - denominator_mean * denominator_mean;
    numerator_variance = squared_numerator - numerator_mean.squaredNorm();
  }
};

void check_sums(const SampledRow& stated, const Enumerated& found) {
  CHECK(std::abs(stated.denominator_mean - found.denominator_mean) < tolerance);
  CHECK(std::abs(stated.denominator_variance - found.denominator_variance) < tolerance);
  CHECK(std::abs(stated.numerator_variance - found.numerator_variance) < tolerance);
  CHECK((Row::Map(stated.numerator_mean.data(), 2) - found.numerator_mean).norm() < tolerance);
}

// For each of s strata the probabilities of the keys within it.
std::vector<std::vector<double>> strata_of(const std::vector<double>& p, Index s) {
  std::vector<std::vector<double>> strata;
  for (Index t = 0; t < s; ++t) {
    std::vector<double> of_stratum;
    double before = 0;
    for (const double x : p) {
      const double low = static_cast<double>(t) / static_cast<double>(s),
                   high = static_cast<double>(t + 1) / static_cast<double>(s);
      of_stratum.push_back(std::max(0.0, std::min(high, before + x) - std::max(low, before)) * static_cast<double>(s));
      before += x;
    }
    strata.push_back(of_stratum);
  }
  return strata;
}

const std::vector<double> uneven{0.1, 0.35, 0.05, 0.3, 0.2};

}  // namespace

TEST_CASE("sums over independent draws have the means and variances of all outcomes", "[unit]") {
  const SmallHead head(5);
  for (const Index s : {1, 2, 3, 4}) {
    const std::vector<std::vector<double>> draws(static_cast<size_t>(s), uneven);
    check_sums(theory(head, {.p = uneven, .samples = s}), Enumerated(head, uneven, draws));
  }
}

TEST_CASE("sums over stratified draws have the variances of all outcomes, and less than independent ones", "[unit]") {
  const SmallHead head(5);
  for (const Index s : {1, 2, 3, 4, 6}) {
    const SampledRow stated = theory(head, {.p = uneven, .samples = s, .draws = Draws::stratified});
    check_sums(stated, Enumerated(head, uneven, strata_of(uneven, s)));
    CHECK(stated.numerator_variance <= theory(head, {.p = uneven, .samples = s}).numerator_variance + tolerance);
  }
}

TEST_CASE("sums over distinct keys have the variances of all subsets", "[unit]") {
  const SmallHead head(5);
  const std::vector<double> p(5, 0.2);
  for (const Index s : {1, 2, 3, 4, 5, 7}) {
    const auto count = static_cast<double>(std::min<Index>(s, 5));
    double mean = 0, squares = 0, numerator_squares = 0, subsets = 0;
    Row numerator_mean = Row::Zero(2);
    for (unsigned set = 0; set < 32; ++set) {
      if (__builtin_popcount(set) != static_cast<int>(count)) continue;
      double denominator = 0;
      Row numerator = Row::Zero(2);
      for (Index j = 0; j < 5; ++j)
        if (set >> j & 1U) {
          denominator += head.a(0, j) * 5 / count;
          numerator += head.a(0, j) * 5 / count * head.V.row(j);
        }
      ++subsets;
      mean += denominator;
      squares += denominator * denominator;
      numerator_mean += numerator;
      numerator_squares += numerator.squaredNorm();
    }
    const SampledRow stated = theory(head, {.p = p, .samples = s, .draws = Draws::distinct});
    CHECK(std::abs(mean / subsets - 1) < tolerance);
    CHECK(std::abs(stated.denominator_variance - (squares / subsets - 1)) < tolerance);
    CHECK(std::abs(stated.numerator_variance -
                   (numerator_squares / subsets - (numerator_mean / subsets).squaredNorm())) < tolerance);
    CHECK(stated.row_exact == (s >= 5));
  }
}

TEST_CASE("draws from the softmax row give a row without bias, with the error of all outcomes", "[unit]") {
  const SmallHead head(5);
  const std::vector<double> a(head.a.data(), head.a.data() + 5);
  for (const Draws kind : {Draws::independent, Draws::stratified})
    for (const Index s : {1, 2, 3, 4}) {
      const SampledRow stated = theory(head, {.p = a, .samples = s, .draws = kind});
      const auto outcomes =
          kind == Draws::stratified ? strata_of(a, s) : std::vector<std::vector<double>>(static_cast<size_t>(s), a);
      const Enumerated found(head, a, outcomes);
      CHECK(stated.row_exact);
      CHECK((found.row_mean - head.output).norm() < tolerance);
      CHECK(std::abs(stated.row_squared_error - found.row_squared_error) < tolerance);
      double formula = 0;  // (1/s) sum_j a_j |v_j - o|^2
      for (Index j = 0; j < 5; ++j) formula += head.a(0, j) * (head.V.row(j) - head.output).squaredNorm();
      if (kind == Draws::independent)
        CHECK(std::abs(stated.row_squared_error - formula / static_cast<double>(s)) < tolerance);
    }
}

// With two keys the number of draws of the first is binomial, so that the error of the row is a sum of s + 1 terms.
TEST_CASE("the error of a row from any law is the closed form to first order in 1/s", "[unit]") {
  const SmallHead head(2);
  const std::vector<double> p{0.3, 0.7};
  const auto relative_deviation = [&](Index s) {
    double error = 0;
    const auto draws = static_cast<double>(s);
    for (Index count = 0; count <= s; ++count) {
      const auto hits = static_cast<double>(count);
      const double log_probability = std::lgamma(draws + 1) - std::lgamma(hits + 1) - std::lgamma(draws - hits + 1) +
                                     hits * std::log(p[0]) + (draws - hits) * std::log(p[1]);
      const double first = hits * head.a(0, 0) / p[0], second = (draws - hits) * head.a(0, 1) / p[1];
      const Row row = (first * head.V.row(0) + second * head.V.row(1)) / (first + second);
      error += std::exp(log_probability) * (row - head.output).squaredNorm();
    }
    const SampledRow stated = theory(head, {.p = p, .samples = s});
    CHECK_FALSE(stated.row_exact);
    double formula = 0;  // sum_j (a_j^2 / p_j) |v_j - o|^2 / s
    for (Index j = 0; j < 2; ++j)
      formula +=
          head.a(0, j) * head.a(0, j) / p[static_cast<size_t>(j)] * (head.V.row(j) - head.output).squaredNorm() / draws;
    CHECK(std::abs(stated.row_squared_error - formula) < tolerance);
    return error / stated.row_squared_error - 1;
  };
  const double at_100 = relative_deviation(100), at_400 = relative_deviation(400);
  CHECK(std::abs(at_400) < 0.03);
  CHECK(std::abs(at_100 / at_400 - 4) < 0.4);
}

TEST_CASE("probabilities in proportion to a_j |v_j - o| have the least error to first order", "[unit]") {
  const SmallHead head(5);
  std::vector<double> p;
  double total = 0;
  for (Index j = 0; j < 5; ++j) {
    p.push_back(head.a(0, j) * (head.V.row(j) - head.output).norm());
    total += p.back();
  }
  for (double& x : p) x /= total;
  const double least = theory(head, {.p = p, .samples = 8}).row_squared_error;
  CHECK(std::abs(least - total * total / 8) < tolerance);
  Generator generator = Streams(3).stream("other laws");
  for (int repetition = 0; repetition < 20; ++repetition) {
    std::vector<double> other = p;
    double sum = 0;
    for (double& x : other) sum += x *= 0.5 + static_cast<double>(generator() >> 11) * 0x1p-53;
    for (double& x : other) x /= sum;
    CHECK(theory(head, {.p = other, .samples = 8}).row_squared_error > least);
  }
}

TEST_CASE("keys beside the draws take their part of the mean and none of the variance", "[unit]") {
  const SmallHead head(5);
  const std::vector<bool> exact{false, true, false, false, true};
  // Draws of exact keys add nothing, or no key of X is drawn.
  for (const std::vector<double>& p : {uneven, std::vector<double>{0.2, 0, 0.3, 0.5, 0}})
    for (const Index s : {1, 2, 3}) {
      const std::vector<std::vector<double>> draws(static_cast<size_t>(s), p);
      const SamplingLaw independent{.p = p, .samples = s, .exact = exact};
      check_sums(theory(head, independent), Enumerated(head, p, draws, exact));
      CHECK(std::abs(theory(head, independent).denominator_mean - 1) < tolerance);
      const SamplingLaw stratified{.p = p, .samples = s, .draws = Draws::stratified, .exact = exact};
      check_sums(theory(head, stratified), Enumerated(head, p, strata_of(p, s), exact));
    }
  // Two different ones of the three others.
  const std::vector<double> thirds{1.0 / 3, 0, 1.0 / 3, 1.0 / 3, 0};
  const SampledRow distinct = theory(head, {.p = thirds, .samples = 2, .draws = Draws::distinct, .exact = exact});
  double squares = 0;
  for (const Index left_out : {0, 2, 3}) {
    double denominator = 1;
    for (const Index j : {0, 2, 3}) denominator += head.a(0, j) * (j == left_out ? -1 : 0.5);
    squares += denominator * denominator / 3;
  }
  CHECK(std::abs(distinct.denominator_variance - (squares - 1)) < tolerance);
}

// The sum over the rest of a_j (v_j - o) is not 0 with an exact part. Without the square of it the first order would be
// too large by 40 % here.
TEST_CASE("the error of a row with exact keys is the closed form to first order in 1/s", "[unit]") {
  const SmallHead head(3);
  const std::vector<double> p{0, 0.3, 0.7};
  const std::vector<bool> exact{true, false, false};
  const auto relative_deviation = [&](Index s) {
    double error = 0;
    const auto draws = static_cast<double>(s);
    for (Index count = 0; count <= s; ++count) {
      const auto hits = static_cast<double>(count);
      const double log_probability = std::lgamma(draws + 1) - std::lgamma(hits + 1) - std::lgamma(draws - hits + 1) +
                                     hits * std::log(p[1]) + (draws - hits) * std::log(p[2]);
      const double first = hits * head.a(0, 1) / p[1] / draws, second = (draws - hits) * head.a(0, 2) / p[2] / draws;
      const Row row = (head.a(0, 0) * head.V.row(0) + first * head.V.row(1) + second * head.V.row(2)) /
                      (head.a(0, 0) + first + second);
      error += std::exp(log_probability) * (row - head.output).squaredNorm();
    }
    const SampledRow stated = theory(head, {.p = p, .samples = s, .exact = exact});
    CHECK_FALSE(stated.row_exact);
    return error / stated.row_squared_error - 1;
  };
  const double at_100 = relative_deviation(100), at_400 = relative_deviation(400);
  CHECK(std::abs(at_400) < 0.03);
  CHECK(std::abs(at_100 / at_400 - 4) < 0.6);
}

TEST_CASE("of dependent draws only the means are known, unless every key is exact", "[unit]") {
  const SmallHead head(4);
  const SampledRow some = theory(
      head, {.p = {0.5, 0, 0.25, 1}, .samples = 1, .draws = Draws::dependent, .exact = {false, false, false, true}});
  CHECK_FALSE(some.variances_known);
  CHECK_FALSE(some.row_exact);
  CHECK(std::abs(some.denominator_mean - (1 - head.a(0, 1))) < tolerance);
  const double poisson = std::pow(head.a(0, 0), 2) / 0.5 + std::pow(head.a(0, 2), 2) / 0.25;
  CHECK(std::abs(some.denominator_variance - poisson) < tolerance);
  const SampledRow all =
      theory(head, {.p = {0, 0, 0, 0}, .samples = 1, .draws = Draws::dependent, .exact = std::vector<bool>(4, true)});
  CHECK(all.variances_known);
  CHECK(all.row_exact);
  CHECK(all.row_squared_error < tolerance);
}

TEST_CASE("keys that are never drawn are missing in the means, and their part of the row is an error", "[unit]") {
  const SmallHead head(4);
  const std::vector<double> p{0, 0.5, 0.3, 0.2};
  const SampledRow stated = theory(head, {.p = p, .samples = 3});
  check_sums(stated, Enumerated(head, p, {p, p, p}));
  CHECK(std::abs(stated.denominator_mean - (1 - head.a(0, 0))) < tolerance);
  const Row limit = (head.output - head.a(0, 0) * head.V.row(0)) / (1 - head.a(0, 0));
  CHECK((Row::Map(stated.row.data(), 2) - limit).norm() < tolerance);
  CHECK((Row::Map(stated.output.data(), 2) - head.output).norm() < tolerance);
  CHECK(theory(head, {.p = p, .samples = 1 << 20}).row_squared_error > (limit - head.output).squaredNorm());
}

TEST_CASE("a row that sees no key, or one, has no error", "[unit]") {
  Context context;
  const SmallHead head(1);
  const Matrix<double> none(0, 3), no_values(0, 2);
  const SampledRow empty = sampled_row(context, {.p = {}, .samples = 4}, head.q, none, no_values);
  CHECK(empty.denominator_mean == 0);
  CHECK(empty.output == std::vector<double>{0, 0});
  for (const Draws kind : {Draws::independent, Draws::stratified, Draws::distinct}) {
    const SampledRow one = theory(head, {.p = {1}, .samples = 4, .draws = kind});
    CHECK(one.row_exact);
    CHECK(one.row_squared_error < tolerance);
  }
}

}  // namespace attnbench::sampling_law_test
