// Spearman's correlation and its intervals, of independent points and of points that share a head or a text.
#include "harness/statistics/rank_correlation.hpp"

#include <boost/math/distributions/students_t.hpp>
#include <boost/random/normal_distribution.hpp>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "harness/random/streams.hpp"
#include "tests/scores.hpp"

namespace attnbench::rank_correlation_test {

TEST_CASE("Spearman's correlation is that of ranks, ties shared", "[unit]") {
  const std::vector<double> x{3, 1, 4, 1.5, 9}, decreasing{-3, -1, -4, -1.5, -9};
  std::vector<double> monotone;
  for (const double v : x) monotone.push_back(std::exp(v));
  CHECK(rank_correlation(x, monotone) == 1);
  CHECK(rank_correlation(x, decreasing) == -1);
  // Ranks 0 1.5 1.5 3 and 0 1 2 3: 4.5 / sqrt(4.5 5)
  CHECK(std::abs(rank_correlation(std::vector<double>{1, 2, 2, 5}, std::vector<double>{1, 2, 3, 4}) -
                 4.5 / std::sqrt(4.5 * 5)) < 1e-15);
  CHECK(std::isnan(rank_correlation(std::vector<double>{1, 1}, std::vector<double>{1, 2})));
  CHECK(rank_correlation_interval(0.3, 3, 0.1).low == -1);
  // tanh(atanh(0.5) +- 1.959964 sqrt(1.06 / 47))
  const Interval found = rank_correlation_interval(0.5, 50, 0.05);
  CHECK(std::abs(found.low - std::tanh(0.549306 - 0.294343)) < 1e-5);
  CHECK(std::abs(found.high - std::tanh(0.549306 + 0.294343)) < 1e-5);
}

// Of independent normal pairs, correlation rho: Spearman's is (6 / pi) asin(rho / 2). 20 000 intervals at 5 % in each
// seed: misses are Binomial(20 000, p) with p near 0.05; Fieller's variance is an approximation, so the share is asked
// to lie in [0.04, 0.06], at which a true 5 % errs with probability 1e-9. Power: an interval without the factor 1.06,
// half as wide, misses 33 %.
TEST_CASE("the interval of a rank correlation covers as it says", "[statistics]") {
  constexpr int trials = 20000, points = 30;
  constexpr double rho = 0.5;
  const double truth = 6 / std::numbers::pi * std::asin(rho / 2);
  for (const auto seed : base_seeds) {
    Generator generator = Streams(seed).stream("rank correlation test");
    boost::random::normal_distribution<double> normal;
    int missed = 0, missed_by_half = 0;
    std::vector<double> x(points), y(points);
    for (int t = 0; t < trials; ++t) {
      for (size_t i = 0; i < points; ++i) {
        x[i] = normal(generator);
        y[i] = rho * x[i] + std::sqrt(1 - rho * rho) * normal(generator);
      }
      const double found = rank_correlation(x, y);
      const Interval interval = rank_correlation_interval(found, points, 0.05);
      missed += truth < interval.low || truth > interval.high;
      const double half = (std::atanh(interval.high) - std::atanh(interval.low)) / 4;
      missed_by_half += std::abs(std::atanh(truth) - std::atanh(found)) > half;
    }
    CHECK(missed > 0.04 * trials);
    CHECK(missed < 0.06 * trials);
    CHECK(missed_by_half > 0.2 * trials);
  }
}

namespace {

using Numbers = std::vector<double>;
using Labels = std::vector<size_t>;

double t_quantile(double freedom, double error_rate) {
  return boost::math::quantile(boost::math::complement(boost::math::students_t(freedom), error_rate / 2));
}

// Of Fisher's z, by correlations of what is left: the jackknife's definition.
double jackknife(const Numbers& x, const Numbers& y, const Labels& labels, size_t clusters) {
  Moments without;
  for (size_t left_out = 0; left_out < clusters; ++left_out) {
    Numbers a, b;
    for (size_t i = 0; i < x.size(); ++i)
      if (labels[i] != left_out) {
        a.push_back(x[i]);
        b.push_back(y[i]);
      }
    without.add(std::atanh(rank_correlation(a, b)));
  }
  return without.m2 * static_cast<double>(clusters - 1) / static_cast<double>(clusters);
}

// heads x texts points (x, y), normal: their parts of head, of text and of their own have these shares of the variance.
struct Points {
  Numbers x, y;
  std::vector<Labels> clusterings = std::vector<Labels>(2);
};
struct Shares {
  double head, text;
};

Points points_of(Generator& generator, size_t heads, size_t texts, Shares shares, double rho) {
  boost::random::normal_distribution<double> normal;
  const auto pair = [&](double share) {
    const double a = normal(generator), b = normal(generator);
    return std::pair{std::sqrt(share) * a, std::sqrt(share) * (rho * a + std::sqrt(1 - rho * rho) * b)};
  };
  std::vector<std::pair<double, double>> of_text;
  for (size_t t = 0; t < texts; ++t) of_text.push_back(pair(shares.text));
  Points points;
  for (size_t h = 0; h < heads; ++h) {
    const auto of_head = pair(shares.head);
    for (size_t t = 0; t < texts; ++t) {
      const auto own = pair(1 - shares.head - shares.text);
      points.x.push_back(of_head.first + of_text[t].first + own.first);
      points.y.push_back(of_head.second + of_text[t].second + own.second);
      points.clusterings[0].push_back(h);
      points.clusterings[1].push_back(t);
    }
  }
  return points;
}

}  // namespace

TEST_CASE("the interval of clustered points is that of jackknives over clusters", "[unit]") {
  Generator generator = Streams(1).stream("clustered rank correlation");
  Points points = points_of(generator, 5, 7, {0.4, 0.4}, 0.6);
  Labels own(points.x.size());
  for (size_t i = 0; i < own.size(); ++i) own[i] = i;
  const double centre = std::atanh(rank_correlation(points.x, points.y));
  const double heads = jackknife(points.x, points.y, points.clusterings[0], 5),
               texts = jackknife(points.x, points.y, points.clusterings[1], 7),
               cells = jackknife(points.x, points.y, own, own.size());
  const auto found = [&](std::span<const Labels> clusterings, double variance, double freedom) {
    const double half = t_quantile(freedom, 1e-3) * std::sqrt(variance);
    const Interval interval = clustered_rank_correlation_interval(points.x, points.y, clusterings, 1e-3);
    CHECK(std::abs(interval.low - std::tanh(centre - half)) < 1e-12);
    CHECK(std::abs(interval.high - std::tanh(centre + half)) < 1e-12);
  };
  REQUIRE(heads + texts - cells > std::max(heads, texts));
  found(points.clusterings, heads + texts - cells, 4);
  found({points.clusterings.data(), 1}, heads, 4);
  found({&points.clusterings[1], 1}, texts, 6);
  for (size_t& label : points.clusterings[1]) label = 100 - 3 * label;  // the names of clusters are nothing
  found(points.clusterings, heads + texts - cells, 4);
}

TEST_CASE("too few clusters make no interval, and no perfect correlation is certain", "[unit]") {
  const Numbers x{1, 2, 3, 4, 5, 6}, equal(6, 1.0);
  const std::vector<Labels> two{{0, 0, 0, 1, 1, 1}}, three{{0, 0, 1, 1, 2, 2}};
  CHECK(clustered_rank_correlation_interval(x, x, two, 0.05).low == -1);
  CHECK(clustered_rank_correlation_interval(x, equal, three, 0.05).low == -1);
  const Interval perfect = clustered_rank_correlation_interval(x, x, three, 1e-3);
  CHECK(perfect.low < 1);
}

// 12 heads times 32 texts, 600 draws a law: at 5 % 30 of them miss at the nominal rate, and 1.5 times as many are
// allowed. The true rates are 3.7 % and 3.2 % (3000 draws), so the test errs with probability 1e-5. The power: points
// taken as independent miss 37 % and 47 %, and an interval for heads alone misses too often where texts count most.
TEST_CASE("the interval of clustered points covers as it says", "[statistics]") {
  constexpr int draws = 600;
  constexpr double error_rate = 0.05, allowed = 1.5 * error_rate * draws;
  for (const auto& [shares, rho] : {std::pair{Shares{1. / 3, 1. / 3}, 0.0}, {Shares{0.1, 0.8}, 0.0}}) {
    CAPTURE(shares.head, shares.text, rho);
    Generator generator = Streams(1).stream("clustered", std::to_string(shares.head));
    const double truth = 6 / std::numbers::pi * std::asin(rho / 2);
    int missed = 0, missed_as_independent = 0, missed_by_heads = 0;
    for (int draw = 0; draw < draws; ++draw) {
      const Points points = points_of(generator, 12, 32, shares, rho);
      const auto misses = [&](const Interval& interval) { return truth < interval.low || interval.high < truth; };
      missed += misses(clustered_rank_correlation_interval(points.x, points.y, points.clusterings, error_rate));
      missed_by_heads +=
          misses(clustered_rank_correlation_interval(points.x, points.y, {points.clusterings.data(), 1}, error_rate));
      missed_as_independent +=
          misses(rank_correlation_interval(rank_correlation(points.x, points.y), points.x.size(), error_rate));
    }
    CHECK(missed <= allowed);
    CHECK(missed_as_independent > 4 * allowed / 1.5);
    if (shares.text > 0.5) CHECK(missed_by_heads > allowed);
  }
}

}  // namespace attnbench::rank_correlation_test
