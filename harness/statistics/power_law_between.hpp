// A curve through measured points that is a power law between neighbours: straight lines in logarithms.
#pragma once

#include <span>
#include <utility>
#include <vector>

namespace attnbench {

class PowerLawBetween {
 public:
  // y at x, all positive, as many of each.
  PowerLawBetween(std::span<const double> y, std::span<const double> x);
  // Beyond the ends, the law of the last two points. NaN for fewer than two points.
  double at(double x) const;

 private:
  std::vector<std::pair<double, double>> points_;  // log x, log y, ascending
};

}  // namespace attnbench
