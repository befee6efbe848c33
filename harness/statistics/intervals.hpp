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

// An error rate is the probability with which an interval may miss, both sides together: above 0, at most 0.5. Another
// number throws std::logic_error: it was meant as a confidence.

// The mean's interval: Student's t, on each side widened to that of Hall's transformation (the inverse of `score`, with
// t quantiles) where that reaches farther. Skewed samples make t too short on one side; Hall's alone is too short for
// heavy tails (4 times the rate for t with 3 degrees, n = 32, at 1e-4). Everything for fewer than two values; the mean
// itself when all are equal. Of strongly skewed values it misses too often: see interval_of_averages.
Interval mean_interval(const Moments& sample, double error_rate);
// The mean's interval for a verdict, of replicates that are averages of at least 32 draws each, 64 replicates or more.
// It is mean_interval with the sample's skewness taken one standard error, sqrt(6 / n), farther on each side, since 64
// values know their skewness badly. A sample whose skewness is more than four standard errors above 0.3 is surely far
// from normal: it has no interval (the whole line).
// It then misses at most as often as it says, at rates from 1e-2 to 1e-6, where the draws are normal, lognormal with
// sigma up to 1, Student's t with 3 degrees of freedom or more, or of two far modes
// (tests/statistics/intervals_test.cpp has the simulation, and a lognormal law with sigma = 1.5 for which it fails).
// The premise matters: of 64 single draws, of which a tenth lie far off, all lie near with probability 0.9^64 = 1e-3.
Interval interval_of_averages(const Moments& replicates, double error_rate);

// The median's interval between two order statistics (David and Nagaraja, Order Statistics, 7.1): the narrowest
// symmetric pair that misses the median of any law with error_rate at most, by the binomial law. Everything for fewer
// than least_for_median values.
Interval median_interval(std::vector<double> values, double error_rate);
// The fewest values that have such a pair: the whole range of n misses the median with 2^(1-n).
size_t least_for_median(double error_rate);

// The interval of a probability from so many hits in so many independent trials (Clopper and Pearson 1934, Biometrika
// 26:404): it misses with error_rate at most. 0 to 1 for no trials.
Interval share_interval(double hits, double trials, double error_rate);

// The two-sided threshold on |z| at which a family of `tests` normal tests has that family-wise error rate
// (Bonferroni).
double z_threshold(double family_error_rate, double tests);

}  // namespace attnbench
