// Intervals against exact binomial sums, SciPy's numbers and simulated samples of laws that are skewed, heavy-tailed or
// have two modes.
#include "harness/statistics/intervals.hpp"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/random/normal_distribution.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/linalg/matrix.hpp"
#include "harness/random/streams.hpp"
#include "tests/catch.hpp"

namespace attnbench::intervals_test {

namespace {

using Row = std::vector<double>;

constexpr double infinity = std::numeric_limits<double>::infinity();

bool close(double value, double expected, double relative = 1e-15) {
  return std::abs(value - expected) <= relative * std::max(1.0, std::abs(expected));
}

bool misses(const Interval& interval, double truth) { return truth < interval.low || interval.high < truth; }

// P(Binomial(n, p) = k), by logarithms in long double.
long double binomial(size_t k, size_t n, long double p = 0.5L) {
  const auto a = static_cast<long double>(n), b = static_cast<long double>(k);
  return std::exp(std::lgamma(a + 1) - std::lgamma(b + 1) - std::lgamma(a - b + 1) + b * std::log(p) +
                  (a - b) * std::log1p(-p));
}

// P(at most k of n fair coins show heads).
double at_most(size_t k, size_t n) {
  long double sum = 0;
  for (size_t i = 0; i <= k; ++i) sum += binomial(i, n);
  return static_cast<double>(sum);
}

// How many order statistics the interval leaves out at each end, read off from 0, 1, ..., n - 1.
size_t left_out(size_t n, double error_rate) {
  Row values(n);
  std::iota(values.begin(), values.end(), 0.0);
  std::reverse(values.begin(), values.end());
  const Interval interval = median_interval(values, error_rate);
  CHECK(interval.low + interval.high == static_cast<double>(n - 1));
  return static_cast<size_t>(interval.low);
}

}  // namespace

TEST_CASE("quantiles are linear between order statistics", "[unit]") {
  const Row sorted = {1, 2, 3, 5};
  CHECK(quantile(sorted, 0) == 1);
  CHECK(quantile(sorted, 0.25) == 1.75);
  CHECK(quantile(sorted, 0.5) == 2.5);
  CHECK(quantile(sorted, 0.75) == 3.5);
  CHECK(quantile(sorted, 1) == 5);
  CHECK(quantile(Row{7}, 0.3) == 7);
  CHECK(median({5, 1, 3}) == 3);
  CHECK(median({5, 1, 3, 2}) == 2.5);
  CHECK(median({4}) == 4);
  CHECK(median({1, infinity, 2}) == 2);
  CHECK(median({1, infinity, infinity}) == infinity);
  CHECK(median({1, infinity, infinity, infinity}) == infinity);
  CHECK(median({1, 2, infinity, infinity}) == infinity);
  CHECK(median({-infinity, -infinity, 2, 3}) == -infinity);
}

// With k order statistics left out at each end, the interval misses a continuous law's median when at most k values lie
// on one side of it. One more left out is over the rate, so an interval that is off by one is found at every n.
TEST_CASE("the interval of the median is the narrowest that keeps the error rate", "[unit]") {
  for (const double error_rate : {0.5, 0.1, 0.05, 1e-2, 1e-3, 1e-4, 1e-6, 1e-9})
    for (size_t n = least_for_median(error_rate); n <= 300; n += n < 60 ? 1 : 35) {
      CAPTURE(error_rate, n);
      const size_t k = left_out(n, error_rate);
      CHECK(2 * at_most(k, n) <= error_rate * (1 + 1e-9));
      CHECK(2 * at_most(k + 1, n) > error_rate * (1 - 1e-9));
    }
  CHECK(left_out(6, 0.05) == 0);
  CHECK(left_out(9, 0.05) == 1);     // 20 / 2^9 = 3.9 %
  CHECK(left_out(100, 0.05) == 39);  // the tables' order statistics 40 and 61
  // scipy.special.bdtr(k, n, 0.5) <= error_rate / 2
  CHECK(left_out(21, std::ldexp(1.0, -20)) == 0);
  CHECK(left_out(22, 9.3e-7) == 0);
  CHECK(left_out(32, 1e-3) == 6);
  CHECK(left_out(32, 1e-6) == 2);
  CHECK(left_out(64, 1e-6) == 12);
  CHECK(left_out(128, 1e-7) == 33);
  CHECK(left_out(200, 1e-9) == 56);
  CHECK(left_out(1000, 1e-8) == 409);
}

TEST_CASE("fewer values than the error rate asks for make no interval of the median", "[unit]") {
  CHECK(least_for_median(0.5) == 2);
  CHECK(least_for_median(0.05) == 6);  // 2 / 2^5 is more than 5 %
  CHECK(least_for_median(std::ldexp(1.0, -20)) == 21);
  CHECK(least_for_median(std::nextafter(std::ldexp(1.0, -20), 0)) == 22);
  CHECK(least_for_median(9.3e-7) == 22);
  CHECK(least_for_median(1e-9) == 31);
  for (const size_t n : {0u, 1u, 21u}) {
    const Interval none = median_interval(Row(n, 7.0), 9.3e-7);
    CHECK((none.low == -infinity && none.high == infinity));
  }
}

TEST_CASE("an interval of the mean is Student's, and Hall's on a side where that reaches farther", "[unit]") {
  const Interval symmetric = mean_interval(moments(Row{1, 2, 3, 4, 5}), 0.05);
  CHECK(close(symmetric.low, 3 - 2.7764451051977987 * std::sqrt(0.5), 1e-12));  // t of 4 degrees of freedom at 97.5 %
  CHECK(close(symmetric.high, 3 + 2.7764451051977987 * std::sqrt(0.5), 1e-12));
  // scipy.stats.t.isf, and scipy.optimize.brentq for the root of Hall's cubic
  const Interval skewed = mean_interval(moments(Row{1, 2, 4, 8, 16}), 0.05);
  CHECK(close(skewed.low, -1.3731325632789053, 1e-12));  // Student's: Hall's is 0.128
  CHECK(close(skewed.high, 18.237415301369563, 1e-12));  // Hall's: Student's is 13.77
  const Interval mirrored = mean_interval(moments(Row{-1, -2, -4, -8, -16}), 0.05);
  CHECK((mirrored.low == -skewed.high && mirrored.high == -skewed.low));
  const Interval rare = mean_interval(moments(Row{1, 2, 4, 8, 16}), 1e-6);
  CHECK(close(rare.low, -128.7051749152596, 1e-12));
  CHECK(close(rare.high, 141.10517491525957, 1e-12));  // Hall's is 102.7
  const Interval equal = mean_interval(moments(Row{7, 7, 7}), 1e-9);
  CHECK((equal.low == 7 && equal.high == 7));
  const Interval single = mean_interval(moments(Row{7}), 0.05);
  CHECK((single.low == -infinity && single.high == infinity));
}

// The two are inverse: at an end of Hall's interval the score is the t quantile. Had it been
// passed as 1 - 1e-15, the rate would be off by a tenth.
TEST_CASE("the score at Hall's end of the interval is the quantile of t, to error rates of 1e-15", "[unit]") {
  Row values;
  for (int i = 0; i < 40; ++i) values.push_back(std::exp(i / 20.0));
  const Moments sample = moments(values);
  for (const double error_rate : {0.1, 1e-3, 1e-6, 1e-9, 1e-15}) {
    CAPTURE(error_rate);
    const boost::math::students_t t(39);
    const double expected = boost::math::quantile(boost::math::complement(t, error_rate / 2));
    CHECK(close(score(sample, mean_interval(sample, error_rate).high) / expected, -1, 1e-9));
  }
}

TEST_CASE("what was meant as a confidence is refused as an error rate", "[unit]") {
  const Moments sample = moments(Row{1, 2, 3});
  for (const double error_rate : {0.0, -0.1, 0.95, 0.999999, std::nan("")}) {
    CAPTURE(error_rate);
    CHECK_THROWS_AS(mean_interval(sample, error_rate), std::logic_error);
    CHECK_THROWS_AS(interval_of_averages(sample, error_rate), std::logic_error);
    CHECK_THROWS_AS(median_interval({1, 2, 3}, error_rate), std::logic_error);
    CHECK_THROWS_AS(share_interval(1, 2, error_rate), std::logic_error);
  }
}

// scipy.special.btdtri and scipy.stats.binomtest(...).proportion_ci(method="exact"), to the digits on which both agree.
TEST_CASE("the interval of a share is that of Clopper and Pearson", "[unit]") {
  const auto found = [](double hits, double trials, double error_rate, double low, double high) {
    const Interval interval = share_interval(hits, trials, error_rate);
    CAPTURE(hits, trials, interval.low, interval.high);
    CHECK(close(interval.low, low, 1e-9));
    CHECK(close(interval.high, high, 1e-9));
  };
  found(0, 10, 0.05, 0, 0.30849710781876);
  found(10, 10, 0.05, 0.69150289218124, 1);
  found(3, 10, 0.05, 0.06673951117773, 0.65245285006000);
  found(12, 384, 1e-6, 0.00478028034783, 0.09749342841533);
  found(31, 32, 1e-3, 0.72790001148663, 0.99998437121458);
  found(500, 1000, 1e-9, 0.403832214, 0.596167786);
  found(0, 0, 1e-3, 0, 1);
}

// Exact: the chance of each number of hits times whether its interval misses. Power: the Wald interval at a share of
// 1 % misses 53 times as often as it says.
TEST_CASE("the interval of a share misses no share more often than it says", "[unit]") {
  constexpr size_t trials = 64;
  const auto missed = [](double share, auto&& interval_of) {
    long double sum = 0;
    for (size_t hits = 0; hits <= trials; ++hits)
      if (misses(interval_of(static_cast<double>(hits)), share)) sum += binomial(hits, trials, share);
    return static_cast<double>(sum);
  };
  for (const double error_rate : {1e-2, 1e-4, 1e-6}) {
    for (const double share : {0.001, 0.01, 0.1, 0.37, 0.5, 0.9, 0.999})
      CHECK(missed(share, [&](double hits) { return share_interval(hits, trials, error_rate); }) <= error_rate);
  }
  const double wald = missed(0.01, [](double hits) {
    const double p = hits / trials, half = z_threshold(1e-2, 1) * std::sqrt(p * (1 - p) / trials);
    return Interval{p - half, p + half};
  });
  CHECK(wald > 0.5);
}

TEST_CASE(
    "the interval of averages takes the skewness a standard error farther, and refuses what is significantly skewed",
    "[unit]") {
  Row values;
  for (int i = 0; i < 64; ++i) values.push_back(std::exp(i / 40.0));
  // scipy.stats.t.isf, and scipy.optimize.brentq for the root of Hall's cubic at the skewness 0.5319 + sqrt(6 / 64)
  const Interval skewed = interval_of_averages(moments(values), 1e-4);
  CHECK(close(skewed.low, 1.862097548121556, 1e-12));   // Student's
  CHECK(close(skewed.high, 3.134077711697151, 1e-12));  // mean_interval's is 3.083, Student's 3.018
  // Of n values, one 1 and the others 0, the skewness is nearly sqrt(n): 8, where 0.3 + 4 sqrt(6 / 64) = 1.52 is borne.
  Row one(64, 0.0);
  one.front() = 1;
  const Interval none = interval_of_averages(moments(one), 1e-2);
  CHECK((none.low == -infinity && none.high == infinity));
  // 16 of 64 are 1: skewness (1 - 2 p) / sqrt(p (1 - p)) = 1.155 but for the sample's variance. 11 of 64: 1.74.
  Row many(64, 0.0), few(64, 0.0);
  std::fill_n(many.begin(), 16, 1.0);
  std::fill_n(few.begin(), 11, 1.0);
  CHECK(std::isfinite(interval_of_averages(moments(many), 1e-2).high));
  CHECK(std::isinf(interval_of_averages(moments(few), 1e-2).high));
}

TEST_CASE("a threshold on z shares the error rate of a family among its tests", "[unit]") {
  CHECK(close(z_threshold(0.05, 1), 1.959963984540054, 1e-12));
  CHECK(close(z_threshold(1e-3, 1), 3.290526731491896, 1e-12));
  CHECK(close(z_threshold(1e-6, 1), 4.891638475698590, 1e-12));
  CHECK(z_threshold(1e-3, 100) == z_threshold(1e-5, 1));
  for (const double tests : {1.0, 10.0, 1000.0})
    CHECK(close(tests * std::erfc(z_threshold(1e-3, tests) / std::sqrt(2)), 1e-3, 1e-12));
}

namespace {

struct Law {
  std::string name;
  double median;
  std::function<double(Generator&)> draw;
};

double normal(Generator& generator) {
  boost::random::normal_distribution<double> standard;
  return standard(generator);
}

double uniform(Generator& generator) { return (static_cast<double>(generator() >> 11) + 0.5) * 0x1p-53; }

Law lognormal(double sigma) {
  return {"lognormal " + std::to_string(sigma), 1, [=](Generator& g) { return std::exp(sigma * normal(g)); }};
}

// Student's t of an odd number of degrees of freedom: chi-squared is a squared normal and exponentials.
Law student(int degrees) {
  return {"t " + std::to_string(degrees), 0, [=](Generator& g) {
            const double z = normal(g);
            double square = z * z;
            for (int i = 1; i < degrees; i += 2) square -= 2 * std::log(uniform(g));
            return normal(g) / std::sqrt(square / degrees);
          }};
}

// A share of the values near 1, the others near 0: 20 deviations apart.
Law two_modes(double share) {
  const double within = 0.05, at_half = share < 0.5 ? 0.5 / (1 - share) : 1;
  const double of_low_mode = at_half < 1 ? within * boost::math::quantile(boost::math::normal(), at_half) : 0.5;
  return {"modes " + std::to_string(share), of_low_mode,
          [=](Generator& g) { return (uniform(g) < share ? 1 : 0) + within * normal(g); }};
}

const std::vector<Law>& laws() {
  static const std::vector<Law> all{{"normal", 0, normal}, lognormal(0.5), lognormal(1), student(3), student(5),
                                    two_modes(0.1),        two_modes(0.5)};
  return all;
}

Interval student_interval(const Moments& sample, double error_rate) {
  const boost::math::students_t t(sample.count - 1);
  const double half = boost::math::quantile(boost::math::complement(t, error_rate / 2)) * sample.standard_error();
  return {sample.mean - half, sample.mean + half};
}

constexpr double rate = 1e-3;
constexpr int samples = 100'000;
constexpr double nominal = samples * rate;

// The averages of `draws` draws each of a law: 2^18 of them, which are a law of their own whose mean is known exactly.
struct Averages {
  Row values;
  double mean;
};

Averages averages(const Law& law, int draws) {
  Generator generator = Streams(1).stream("averages", law.name, draws);
  Row values(size_t{1} << 18);
  for (double& value : values) {
    double sum = 0;
    for (int i = 0; i < draws; ++i) sum += law.draw(generator);
    value = sum / draws;
  }
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  return {std::move(values), mean};
}

// How many of so many samples of 64 have an interval that misses the mean.
template <class IntervalOf>
int missed_means(const Averages& law, int count, IntervalOf&& interval_of) {
  Generator generator = Streams(2).stream("missed means");
  int missed = 0;
  for (int i = 0; i < count; ++i) {
    Moments sample;
    for (int j = 0; j < 64; ++j) sample.add(law.values[generator() >> 46]);
    // No interval that is tried here is shorter than two standard errors on a side: a shortcut.
    if (std::abs(sample.mean - law.mean) < 2 * sample.standard_error()) continue;
    missed += misses(interval_of(sample), law.mean);
  }
  return missed;
}

const auto averages_at = [](double error_rate) {
  return [=](const Moments& sample) { return interval_of_averages(sample, error_rate); };
};

}  // namespace

// The replicates of a verdict on a mean: 64 averages of 32 draws each. How often the interval missed on either side,
// over the rate that was asked for, in 1e6 samples a law (of 1e-5 and 1e-6 these are 10 and 1 expected misses: few):
//                                            1e-2   1e-3   1e-4   1e-5   1e-6     mean_interval: 1e-4   1e-6
//   normal                                   0.74   0.58   0.48    0.5      0                    0.72      1
//   lognormal, sigma = 0.5 (skewness 0.3)    0.74   0.59   0.43    0.3      0                    0.74      0
//   lognormal, sigma = 1 (skewness 1.1)      0.71   0.64   0.59    0.8      1                    1.18      5
//   lognormal, sigma = 1.5 (skewness 5.9)    0.94   1.42   2.32    2.6      9                    4.46     18
//   Student's t, 3 degrees of freedom        0.77   0.59   0.46    0.4      1                    0.66      2
//   Student's t, 5 degrees of freedom        0.78   0.64   0.51    0.3      1                    0.77      1
//   two modes, 0.1 and 0.9                   0.70   0.54   0.37    0.6      1                    0.85      2
//   two modes, 0.5 and 0.5                   0.76   0.60   0.51    0.4      0                    0.80      1
// The ratio falls with the rate, or stays, for all laws but lognormal ones: a line through the logarithms at 1e-3 and
// 1e-4 gives 0.5 at 1e-6 for sigma = 1, and 6 for sigma = 1.5, which the rule is not for.
// The test takes 300 000 samples a law, of which 300 and 30 miss at the nominal rates of 1e-3 and 1e-4. By the table
// 192 and 18 or fewer are expected: a correct program fails with probability 1e-6 at most, the seven laws together.
TEST_CASE("means of averages are missed less often than their rate says", "[statistics]") {
  constexpr int many = 300'000;
  for (const Law& law : laws()) {
    CAPTURE(law.name);
    const Averages replicates = averages(law, 32);
    CHECK(missed_means(replicates, many, averages_at(1e-3)) <= many * 1e-3);
    CHECK(missed_means(replicates, many, averages_at(1e-4)) <= 1.5 * many * 1e-4);
  }
}

// Planted: Student's interval for skewed averages, averages that are too skewed for the rule (its limit, which is
// stated in intervals.hpp), and single draws of a law that has a far tenth, which break the rule's premise. Each is
// missed so much more often that the test overlooks it with probability 1e-6 at most.
TEST_CASE("what breaks the rule for means is missed more often than its rate says", "[statistics]") {
  constexpr int many = 300'000;
  const auto student = [](const Moments& sample) { return student_interval(sample, rate); };
  CHECK(missed_means(averages(lognormal(1), 32), many, student) > 1.5 * many * rate);
  CHECK(missed_means(averages(lognormal(1.5), 32), many, averages_at(1e-4)) > 1.5 * many * 1e-4);
  CHECK(missed_means(averages(two_modes(0.1), 1), many, averages_at(1e-4)) > 5 * many * 1e-4);
}

// 100 000 samples of 32 a law. The interval [x7, x26] misses with 5.35e-4 exactly under every law: 53.5 samples, and
// seven Poisson counts lie in 18 to 95 but for a probability of 1e-6. Planted: [x8, x25] misses 210 times.
TEST_CASE("medians are judged wrongly as seldom as the binomial law says, for every law", "[statistics]") {
  constexpr size_t n = 32;
  for (const Law& law : laws()) {
    CAPTURE(law.name);
    Generator generator = Streams(1).stream("wrong medians", law.name);
    int wrong = 0, wrong_by_one = 0;
    Row values(n);
    for (int i = 0; i < samples; ++i) {
      for (double& x : values) x = law.draw(generator);
      const auto below = std::count_if(values.begin(), values.end(), [&](double x) { return x < law.median; });
      if (below > 10 && below < 22) continue;  // the middle order statistics enclose it: a shortcut
      wrong += misses(median_interval(values, rate), law.median);
      std::sort(values.begin(), values.end());
      wrong_by_one += misses({values[7], values[24]}, law.median);
    }
    CHECK(wrong > 17);
    CHECK(wrong < 96);
    CHECK(wrong_by_one > 1.5 * nominal);
  }
}

}  // namespace attnbench::intervals_test
