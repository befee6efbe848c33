#include "harness/statistics/intervals.hpp"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cassert>
#include <cmath>

namespace attnbench {

double quantile(std::span<const double> sorted, double q) {
  assert(!sorted.empty());
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return quantile(values, 0.5);
}

Interval mean_interval(const Moments& sample, double confidence) {
  if (sample.count < 2) return {sample.mean, sample.mean};
  const boost::math::students_t t(sample.count - 1);
  const double half = boost::math::quantile(boost::math::complement(t, (1 - confidence) / 2)) * sample.standard_error();
  return {sample.mean - half, sample.mean + half};
}

Interval median_interval(std::vector<double> values, double confidence) {
  assert(!values.empty());
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  const boost::math::binomial below_median(static_cast<double>(n), 0.5);
  // [x_(k+1), x_(n-k)] misses the median when at most k values lie on one side of it.
  size_t k = 0;
  while (2 * (k + 1) < n && 2 * cdf(below_median, static_cast<double>(k)) <= 1 - confidence) ++k;
  if (k > 0) --k;
  return {values[k], values[n - 1 - k]};
}

double z_threshold(double family_error_rate, double tests) {
  return boost::math::quantile(boost::math::complement(boost::math::normal(), family_error_rate / (2 * tests)));
}

}  // namespace attnbench
