// Two samples against each other.
#pragma once

#include <vector>

#include "harness/statistics/intervals.hpp"

namespace attnbench {

// Welch's t interval of mean(b) - mean(a) for independent samples of unequal variances (Welch 1947, Biometrika 34:28);
// the difference itself when neither varies. At least two values each.
Interval difference_interval(const Moments& a, const Moments& b, double confidence);

// Distribution-free interval of median(b) / median(a): the extremes of the ratio over both medians' intervals, each of
// which misses with half of the probability. Its coverage is at least `confidence`. Values above 0.
Interval median_ratio_interval(const std::vector<double>& a, const std::vector<double>& b, double confidence);

// Whether that many values give a median's interval of that coverage: their whole range misses it with 2^(1-n).
bool enough_for_median(size_t values, double confidence);

}  // namespace attnbench
