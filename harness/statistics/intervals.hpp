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

// An error rate is the probability with which an interval may miss, both sides together: above 0, at most 0.5. Other
// numbers throw std::logic_error, because the caller probably meant a confidence.

// The mean's interval: Student's t, widened on each side to that of Hall's transformation (the inverse of `score`, with
// t quantiles) if that reaches farther. Skewed samples make t too short on one side; Hall's alone is too short for
// heavy tails (4 times the rate for t with 3 degrees, n = 32, at 1e-4). The whole line for fewer than two values; the
// mean itself if all values are equal. For strongly skewed values it misses too often: see interval_of_averages.
Interval mean_interval(const Moments& sample, double error_rate);
// The mean's interval for a verdict, for at least 64 replicates that each average at least 32 draws. It is
// mean_interval with the sample's skewness moved by one standard error, sqrt(6 / n), on each side, because 64 values
// determine their skewness badly. A sample whose skewness is more than four standard errors above 0.3 is significantly
// far from normal and has no interval (the whole line). It then misses at most as often as stated, at rates from 1e-2
// to 1e-6, if the draws are normal, lognormal with sigma up to 1, Student's t with 3 degrees of freedom or more, or
// bimodal with distant modes (tests/statistics/intervals_test.cpp has the simulation, and a lognormal law with sigma
// = 1.5 for which it fails). The premise matters: if a tenth of single draws lie far off, 64 of them all lie near with
// probability 0.9^64 = 1e-3.
Interval interval_of_averages(const Moments& replicates, double error_rate);

// The median's interval between two order statistics (David and Nagaraja, Order Statistics, 7.1): the narrowest
// symmetric pair that misses the median of any law with error_rate at most, by the binomial law. The whole line for
// fewer than least_for_median values.
Interval median_interval(std::vector<double> values, double error_rate);
// The fewest values that have such a pair: the whole range of n values misses the median with probability 2^(1-n).
size_t least_for_median(double error_rate);

// The interval of a probability from `hits` hits in `trials` independent trials (Clopper and Pearson 1934, Biometrika
// 26:404). It misses with error_rate at most. 0 to 1 without trials.
Interval share_interval(double hits, double trials, double error_rate);

// The two-sided threshold on |z| at which a family of `tests` normal tests has that family-wise error rate
// (Bonferroni).
double z_threshold(double family_error_rate, double tests);

}  // namespace attnbench
