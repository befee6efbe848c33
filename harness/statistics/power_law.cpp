#include "harness/statistics/power_law.hpp"

#include <cassert>
#include <cmath>
#include <limits>

namespace attnbench {

double exponent(std::span<const double> x, std::span<const double> y) {
  assert(x.size() == y.size() && x.size() > 1);
  double mean_x = 0, mean_y = 0, covariance = 0, variance = 0;
  const auto count = static_cast<double>(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    mean_x += std::log(x[i]) / count;
    mean_y += std::log(y[i]) / count;
  }
  for (size_t i = 0; i < x.size(); ++i) {
    covariance += (std::log(x[i]) - mean_x) * (std::log(y[i]) - mean_y);
    variance += (std::log(x[i]) - mean_x) * (std::log(x[i]) - mean_x);
  }
  return covariance / variance;
}

double last_rise_through_one(std::span<const double> x, std::span<const double> y) {
  assert(x.size() == y.size() && !x.empty());
  size_t above = x.size();  // from here on y is at or above 1
  while (above > 0 && y[above - 1] >= 1) --above;
  if (above == 0) return 0;
  if (above == x.size()) return std::numeric_limits<double>::infinity();
  const double share = std::log(1 / y[above - 1]) / std::log(y[above] / y[above - 1]);
  return x[above - 1] * std::pow(x[above] / x[above - 1], share);
}

}  // namespace attnbench
