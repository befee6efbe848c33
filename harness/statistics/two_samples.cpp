#include "harness/statistics/two_samples.hpp"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cassert>
#include <cmath>

namespace attnbench {

namespace {

// The probability of each number u of pairs a_i > b_j, for u = 0 to n m, if both samples have the same distribution.
// The numbers of arrangements of n + m values with each u are the coefficients of the product of (1 - x^(m+i)) / (1 -
// x^i), i = 1 to n.
std::vector<double> law_of_pairs(size_t n, size_t m) {
  std::vector<double> law(n * m + 1, 0.0);
  law[0] = 1;
  for (size_t i = 1; i <= n; ++i) {
    for (size_t u = law.size(); u-- > m + i;) law[u] -= law[u - m - i];
    for (size_t u = i; u < law.size(); ++u) law[u] += law[u - i];
    for (double& chance : law) chance *= static_cast<double>(i) / static_cast<double>(m + i);
  }
  return law;
}

// How many of the sorted n m ratios may be left out at each end so that each end misses with probability `miss` at
// most.
size_t pairs_left_out(size_t n, size_t m, double miss) {
  constexpr size_t exactly = 100;
  if (std::max(n, m) > exactly) {  // normal approximation, one pair to the safe side
    const auto of_a = static_cast<double>(n), of_b = static_cast<double>(m);
    const double deviation = std::sqrt(of_a * of_b * (of_a + of_b + 1) / 12);
    const double quantile = boost::math::quantile(boost::math::complement(boost::math::normal(), miss));
    return static_cast<size_t>(std::max(0.0, std::floor(of_a * of_b / 2 - quantile * deviation - 1)));
  }
  double below = 0;
  size_t out = 0;
  for (const double chance : law_of_pairs(n, m)) {
    if ((below += chance) > miss) break;
    ++out;
  }
  return out == 0 ? 0 : out - 1;
}

}  // namespace

Interval difference_interval(const Moments& a, const Moments& b, double error_rate) {
  assert(a.count > 1 && b.count > 1);
  const double va = a.variance() / a.count, vb = b.variance() / b.count, difference = b.mean - a.mean;
  if (va + vb == 0) return {difference, difference};
  const double freedom = (va + vb) * (va + vb) / (va * va / (a.count - 1) + vb * vb / (b.count - 1));
  const boost::math::students_t t(freedom);
  const double half = boost::math::quantile(boost::math::complement(t, error_rate / 2)) * std::sqrt(va + vb);
  return {difference - half, difference + half};
}

Interval ratio_interval(const std::vector<double>& a, const std::vector<double>& b, double error_rate) {
  std::vector<double> ratios;
  for (const double x : a)
    for (const double y : b) ratios.push_back(y / x);
  std::sort(ratios.begin(), ratios.end());
  const size_t out = std::min(pairs_left_out(a.size(), b.size(), error_rate / 2), (ratios.size() - 1) / 2);
  return {ratios[out], ratios[ratios.size() - 1 - out]};
}

bool enough_for_ratio(size_t of_a, size_t of_b, double error_rate) {
  const auto n = static_cast<double>(of_a), m = static_cast<double>(of_b);
  const double log_arrangements = std::lgamma(n + m + 1) - std::lgamma(n + 1) - std::lgamma(m + 1);
  return std::log(2) - log_arrangements <= std::log(error_rate);
}

}  // namespace attnbench
