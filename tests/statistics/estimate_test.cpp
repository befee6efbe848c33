// Estimates: their values and intervals on samples whose answers are known, and samples that are too few.
#include "harness/statistics/estimate.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>

#include "tests/catch.hpp"

namespace attnbench::estimate_test {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

bool near(double x, double y) { return std::abs(x - y) < 1e-9 * std::max(1.0, std::abs(y)); }

// 1 to 21, of which the order statistics are their own numbers.
Samples ranks(Index count) {
  Samples samples;
  for (Index i = 0; i < count; ++i) samples[i] = static_cast<double>(i + 1);
  return samples;
}

}  // namespace

TEST_CASE("the interval of a median lies between order statistics that the binomial law gives", "[unit]") {
  // 2 P(Binomial(21, 1/2) <= 4) = 0.0072, and 0.0266 for 5: x_5 and x_17 at 1 %, the fifth from each end.
  const Estimate found = median_of(ranks(21), 0.01);
  CHECK(found.value == 11);
  CHECK(found.interval.low == 5);
  CHECK(found.interval.high == 17);
  CHECK(found.count == 21);
  const Estimate whole = median_of(ranks(21), std::exp2(-20));
  CHECK(whole.interval.low == 1);
  CHECK(whole.interval.high == 21);
}

TEST_CASE("an interval that cannot exist at the asked error rate is a mistake of whoever planned it", "[unit]") {
  CHECK_THROWS_AS(median_of(ranks(21), 9.26e-7), std::logic_error);  // 2^-20 = 9.54e-7
  CHECK_NOTHROW(median_of(ranks(22), 9.26e-7));
  CHECK_THROWS_AS(median_ratio(ranks(21), ranks(21), 9.26e-7), std::logic_error);
  CHECK_THROWS_AS(mean(ranks(32), 1e-6), std::logic_error);
  CHECK_THROWS_AS(mean_ratio(ranks(32), ranks(32), 1e-6), std::logic_error);
}

TEST_CASE("without samples nothing is decided; at smoke sizes an interval is the number itself", "[unit]") {
  for (const Estimate& e : {median_of(Samples{}, 1e-9), mean({}, 1e-9), median_ratio({}, {}, 1e-9), unmeasured()}) {
    CHECK_FALSE(e.measured());
    CHECK_FALSE(e.below(1e300));
    CHECK_FALSE(e.above(-1e300));
    CHECK(e.text() == "not measured");
  }
  const Estimate smoke = median_of(ranks(2), 1);
  CHECK(smoke.interval.low == 1.5);
  CHECK(smoke.interval.high == 1.5);
  CHECK(mean(ranks(1), 1).interval.low == 1);
}

TEST_CASE("a mean has the interval of averages, and a sample that is significantly skewed has none", "[unit]") {
  Samples symmetric, skewed;
  for (Index i = 0; i < 256; ++i) {
    symmetric[i] = i % 2 ? 1 : -1;
    skewed[i] = i == 0 ? 1000 : 0;
  }
  const Estimate found = mean(symmetric, 1e-3);
  CHECK(std::abs(found.value) < 1e-12);
  // scipy.stats.t and scipy.optimize.brentq: the root of Hall's cubic at the skewness sqrt(6 / 256). Student's end is
  // 0.208476: the sample is symmetric, and may be of a law that is not.
  CHECK(std::abs(found.interval.high - 0.210831202296) < 1e-9);
  CHECK(std::abs(found.interval.low + found.interval.high) < 1e-12);
  CHECK(mean(skewed, 1e-3).interval.high == infinity);
  CHECK(mean(skewed, 1e-3).text().find("too skewed") != std::string::npos);
}

TEST_CASE("ratios are paired by replicate", "[unit]") {
  const Samples a{{0, 2}, {1, 6}, {2, 20}, {5, 1}}, b{{0, 1}, {1, 2}, {2, 4}, {4, 1}};
  CHECK(quotients(a, b) == Samples{{0, 2}, {1, 3}, {2, 5}});
  CHECK(median_ratio(a, b, 0.5).value == 3);
  CHECK(near(mean_ratio(a, b, 1).value, std::cbrt(30.0)));
  CHECK(quotients(a, {{0, 2}}) == Samples{{0, 1}, {1, 3}, {2, 10}, {5, 0.5}});  // measured once: each has that partner
}

TEST_CASE("a ratio of zeros is a tie, and a mean of logarithms refuses what has none", "[unit]") {
  CHECK(quotients({{0, 0}, {1, 1}, {2, 0}}, {{0, 0}, {1, 0}, {2, 4}}) == Samples{{0, 1}, {1, infinity}, {2, 0}});
  CHECK_THROWS_AS(mean_ratio({{0, 0}}, {{0, 1}}, 1), std::logic_error);
}

TEST_CASE("a share of draws has the interval of Clopper and Pearson", "[unit]") {
  const Estimate all = share_of(32, 32, 1e-3);  // low end: (rate / 2)^(1/32)
  CHECK(all.value == 1);
  CHECK(near(all.interval.low, std::pow(5e-4, 1.0 / 32)));
  CHECK(all.interval.high == 1);
  CHECK_FALSE(share_of(0, 0, 1e-3).measured());
}

}  // namespace attnbench::estimate_test
