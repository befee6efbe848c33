#include "approximations/quantised/lloyd_max.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace attnbench {

namespace {

double density(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * M_PI); }
double above(double x) { return std::erfc(x / M_SQRT2) / 2; }  // P(X > x)

// Levels above 0. Each is moved to the mean of the numbers that are nearest to it, again and again: Lloyd's method I.
// log of the density is concave, so that the fixed point is unique (Kieffer 1983, IEEE Trans. Inf. Theory 29:42).
std::vector<double> positive_levels(size_t count) {
  std::vector<double> levels(count);
  for (size_t l = 0; l < count; ++l) levels[l] = 3 * (static_cast<double>(l) + 0.5) / static_cast<double>(count);
  for (double moved = 1; moved > 1e-15;) {
    moved = 0;
    double low_density = density(0), low_above = 0.5;
    for (size_t l = 0; l < count; ++l) {
      const bool last = l + 1 == count;
      const double high = last ? INFINITY : (levels[l] + levels[l + 1]) / 2;
      const double high_density = last ? 0 : density(high), high_above = last ? 0 : above(high);
      const double mean = (low_density - high_density) / (low_above - high_above);
      moved = std::max(moved, std::abs(mean - levels[l]) - 4e-16 * mean);  // less than rounding gives
      levels[l] = mean;
      low_density = high_density;
      low_above = high_above;
    }
  }
  return levels;
}

LloydMax quantiser(Index bits) {
  if (bits == 0) return {{0.0}, 1};
  const auto positive = positive_levels(size_t{1} << (bits - 1));
  LloydMax made{{}, 1};
  for (size_t l = positive.size(); l-- > 0;) made.levels.push_back(-positive[l]);
  made.levels.insert(made.levels.end(), positive.begin(), positive.end());
  double low = 0;
  for (size_t l = 0; l < positive.size(); ++l) {
    const double high = l + 1 == positive.size() ? INFINITY : (positive[l] + positive[l + 1]) / 2;
    made.error -= 2 * positive[l] * positive[l] * (above(low) - above(high));
    low = high;
  }
  return made;
}

}  // namespace

double LloydMax::nearest(double x) const {
  size_t level = 0;
  while (level + 1 < levels.size() && x >= (levels[level] + levels[level + 1]) / 2) ++level;
  return levels[level];
}

const LloydMax& lloyd_max(Index bits) {
  static const auto all = [] {
    std::array<LloydMax, most_lloyd_max_bits + 1> made;
    for (Index b = 0; b <= most_lloyd_max_bits; ++b) made[static_cast<size_t>(b)] = quantiser(b);
    return made;
  }();
  return all.at(static_cast<size_t>(bits));
}

}  // namespace attnbench
