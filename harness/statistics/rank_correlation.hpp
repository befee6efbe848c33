// Spearman's rank correlation, with an interval.
#pragma once

#include <span>

#include "harness/statistics/intervals.hpp"

namespace attnbench {

// The correlation of the ranks of x and y, ties sharing their mean rank: in [-1, 1]; NaN for fewer than two points or
// when all of x or all of y are equal.
double rank_correlation(std::span<const double> x, std::span<const double> y);

// Fisher's z with variance 1.06 / (count - 3) for independent points (Fieller, Hartley and Pearson 1957), which is near
// for |correlation| < 0.8; [-1, 1] for fewer than four points.
Interval rank_correlation_interval(double correlation, size_t count, double confidence);

}  // namespace attnbench
