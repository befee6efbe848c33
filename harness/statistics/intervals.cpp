#include "harness/statistics/intervals.hpp"

#include <algorithm>
#include <boost/math/distributions/beta.hpp>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cassert>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace attnbench {

namespace {

constexpr Interval everything{-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};

void check(double error_rate) {
  if (!(error_rate > 0 && error_rate <= 0.5))
    throw std::logic_error("an error rate above 0 and at most 0.5 is expected, not " + std::to_string(error_rate));
}

double skewness(const Moments& sample) {
  const double variance = sample.variance();
  return variance > 0 ? sample.m3 / sample.count / (variance * std::sqrt(variance)) : 0;
}

// How many standard deviations the sample mean lies above the true mean if Hall's transformation of that distance
// equals x. With g the skewness, W + g W^2 / 3 + g^2 W^3 / 27 = ((1 + g W / 3)^3 - 1) / g is y = x - g / (6 n), and W =
// 3 ((1 + g y)^(1/3) - 1) / g, written here without the division by g, which may be 0.
double hall_inverse(double x, double g, double n) {
  const double y = x - g / (6 * n), root = std::cbrt(1 + g * y);
  return 3 * y / (root * root + root + 1);
}

// Student's interval, extended on each side to Hall's if that reaches farther. The skewness is known within `unsure`.
Interval skewed_interval(const Moments& sample, double error_rate, double unsure) {
  check(error_rate);
  if (sample.count < 2) return everything;
  const double n = sample.count, g = skewness(sample), deviation = std::sqrt(sample.variance());
  const boost::math::students_t t(n - 1);
  const double reach = boost::math::quantile(boost::math::complement(t, error_rate / 2)) / std::sqrt(n);
  return {sample.mean - deviation * std::max(reach, hall_inverse(reach, g - unsure, n)),
          sample.mean + deviation * std::max(reach, -hall_inverse(-reach, g + unsure, n))};
}

}  // namespace

double quantile(std::span<const double> sorted, double q) {
  assert(!sorted.empty());
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double weight = position - static_cast<double>(below);
  // Samples may be infinite: neither 0 times infinity nor a difference of infinities may make the quantile NaN.
  if (weight == 0 || sorted[below] == sorted[above] || std::isinf(sorted[below])) return sorted[below];
  return sorted[below] + weight * (sorted[above] - sorted[below]);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return quantile(values, 0.5);
}

Interval mean_interval(const Moments& sample, double error_rate) { return skewed_interval(sample, error_rate, 0); }

Interval interval_of_averages(const Moments& replicates, double error_rate) {
  const double standard_error = std::sqrt(6 / replicates.count);
  if (std::abs(skewness(replicates)) > 0.3 + 4 * standard_error) return everything;
  return skewed_interval(replicates, error_rate, standard_error);
}

Interval median_interval(std::vector<double> values, double error_rate) {
  if (values.size() < least_for_median(error_rate)) return everything;
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  const boost::math::binomial below_median(static_cast<double>(n), 0.5);
  // [x_(k+1), x_(n-k)] misses the median if at most k values lie on one side of it. For k = 0 that is rare enough.
  size_t k = 0;
  while (2 * cdf(below_median, static_cast<double>(k + 1)) <= error_rate) ++k;
  return {values[k], values[n - 1 - k]};
}

size_t least_for_median(double error_rate) {
  check(error_rate);
  return static_cast<size_t>(1 - std::ilogb(error_rate));  // the least n with 2^(1-n) <= error_rate, exactly
}

Interval share_interval(double hits, double trials, double error_rate) {
  check(error_rate);
  assert(0 <= hits && hits <= trials);
  using Beta = boost::math::beta_distribution<double>;
  const double misses = trials - hits, side = error_rate / 2;
  return {hits > 0 ? boost::math::quantile(Beta(hits, misses + 1), side) : 0,
          misses > 0 ? boost::math::quantile(boost::math::complement(Beta(hits + 1, misses), side)) : 1};
}

double z_threshold(double family_error_rate, double tests) {
  return boost::math::quantile(boost::math::complement(boost::math::normal(), family_error_rate / (2 * tests)));
}

}  // namespace attnbench
