#include "harness/statistics/two_samples.hpp"

#include <boost/math/distributions/students_t.hpp>
#include <cassert>
#include <cmath>

namespace attnbench {

Interval difference_interval(const Moments& a, const Moments& b, double confidence) {
  assert(a.count > 1 && b.count > 1);
  const double va = a.variance() / a.count, vb = b.variance() / b.count, difference = b.mean - a.mean;
  if (va + vb == 0) return {difference, difference};
  const double freedom = (va + vb) * (va + vb) / (va * va / (a.count - 1) + vb * vb / (b.count - 1));
  const boost::math::students_t t(freedom);
  const double half = boost::math::quantile(boost::math::complement(t, (1 - confidence) / 2)) * std::sqrt(va + vb);
  return {difference - half, difference + half};
}

Interval median_ratio_interval(const std::vector<double>& a, const std::vector<double>& b, double confidence) {
  const double each = 1 - (1 - confidence) / 2;
  const Interval of_a = median_interval(a, each), of_b = median_interval(b, each);
  assert(of_a.low > 0);
  return {of_b.low / of_a.high, of_b.high / of_a.low};
}

bool enough_for_median(size_t values, double confidence) {
  return std::ldexp(1.0, 1 - static_cast<int>(values)) <= 1 - confidence;
}

}  // namespace attnbench
