// Intervals and thresholds with stated error rates.
#pragma once

#include <span>
#include <vector>

#include "harness/statistics/moments.hpp"

namespace attnbench {

struct Interval {
  double low = 0, high = 0;
};

// The q-quantile of sorted values, linear between order statistics (Hyndman and Fan's type 7).
double quantile(std::span<const double> sorted, double q);
double median(std::vector<double> values);

// Student's t interval of the mean; the mean itself for fewer than two values.
Interval mean_interval(const Moments& sample, double confidence);
// Distribution-free interval of the median from order statistics (binomial); its coverage is at least `confidence`,
// or the whole range when the sample is too small for that.
Interval median_interval(std::vector<double> values, double confidence);

// The two-sided threshold on |z| at which a family of `tests` normal tests has that family-wise error rate
// (Bonferroni).
double z_threshold(double family_error_rate, double tests);

}  // namespace attnbench
