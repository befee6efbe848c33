#include "harness/statistics/rank_correlation.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>

namespace attnbench {

namespace {

// Ranks from 0, less their mean.
std::vector<double> centred_ranks(std::span<const double> x) {
  std::vector<size_t> order(x.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return x[a] < x[b]; });
  std::vector<double> ranks(x.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin + 1;
    while (end < order.size() && x[order[end]] == x[order[begin]]) ++end;
    for (size_t i = begin; i < end; ++i)
      ranks[order[i]] = static_cast<double>(begin + end - 1) / 2 - static_cast<double>(x.size() - 1) / 2;
    begin = end;
  }
  return ranks;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

}  // namespace

double rank_correlation(std::span<const double> x, std::span<const double> y) {
  assert(x.size() == y.size());
  const auto a = centred_ranks(x), b = centred_ranks(y);
  const double scale = std::sqrt(dot(a, a) * dot(b, b));
  return scale > 0 ? dot(a, b) / scale : std::numeric_limits<double>::quiet_NaN();
}

Interval rank_correlation_interval(double correlation, size_t count, double confidence) {
  if (count < 4 || std::isnan(correlation)) return {-1, 1};
  const double z = z_threshold(1 - confidence, 1), half = z * std::sqrt(1.06 / static_cast<double>(count - 3));
  const double centre = std::atanh(std::clamp(correlation, -1 + 1e-15, 1 - 1e-15));
  return {std::tanh(centre - half), std::tanh(centre + half)};
}

}  // namespace attnbench
