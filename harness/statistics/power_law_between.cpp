#include "harness/statistics/power_law_between.hpp"

#include <algorithm>
#include <cmath>

namespace attnbench {

PowerLawBetween::PowerLawBetween(std::span<const double> y, std::span<const double> x) {
  for (size_t i = 0; i < y.size(); ++i) points_.emplace_back(std::log(x[i]), std::log(y[i]));
  std::sort(points_.begin(), points_.end());
}

double PowerLawBetween::at(double x) const {
  if (points_.size() < 2) return std::nan("");
  const double place = std::log(x);
  size_t end = 1;
  while (end + 1 < points_.size() && points_[end].first < place) ++end;
  const auto& [first, value] = points_[end - 1];
  const auto& [next, next_value] = points_[end];
  const double share = next == first ? 0 : (place - first) / (next - first);
  return std::exp(value + share * (next_value - value));
}

}  // namespace attnbench
