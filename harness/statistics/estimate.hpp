// Numbers with intervals: the mean or median of replicates, and ratios of two methods' replicates.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/core/problem.hpp"
#include "harness/statistics/intervals.hpp"

namespace attnbench {

using Samples = std::map<Index, double>;  // by replicate

// A number with the interval that misses the truth with probability error_rate at most.
struct Estimate {
  double value = 0;
  Interval interval = {};
  Index count = 0;  // replicates, or blocks of turns

  bool below(double bound) const { return interval.high < bound; }
  bool above(double bound) const { return interval.low > bound; }
  bool measured() const { return count > 0; }
  std::string text() const;  // "0.42 (0.39 to 0.45)"
};

// Each of these takes the probability that its interval may miss. Without samples (a cell failed) the interval is the
// whole line and the count 0. Samples that are too few for an interval of that error rate are a mistake in the plan:
// they throw std::logic_error. At an error rate of 1 (smoke sizes) the interval is the number itself.

// The mean over at least replicates_for_means replicates, each an average of 32 draws or more, by interval_of_averages:
// the whole line for a sample that is surely too skewed for it. A median_ratio makes no such assumption.
Estimate mean(const Samples& samples, double error_rate);
// The median, with a distribution-free interval between two order statistics. Samples may be infinite.
Estimate median_of(std::vector<double> samples, double error_rate);
Estimate median_of(const Samples& samples, double error_rate);
// The median over replicates of a / b, distribution-free: "in at least half of the draws a / b lies below". 0 / 0
// counts as 1. Where b was measured once, each replicate of a is divided by that number.
Estimate median_ratio(const Samples& a, const Samples& b, double error_rate);
// The exponential of the mean of log(a / b), for estimates of positive expectations such as mean squared errors. Throws
// std::logic_error when a number is not above 0.
Estimate mean_ratio(const Samples& a, const Samples& b, double error_rate);
// The probability of an event that was seen in so many of so many draws (Clopper and Pearson 1934).
Estimate share_of(Index hits, Index draws, double error_rate);
// Fewer, of more draws each, would leave a skewed sample unseen; more would leave too few draws for one replicate to
// tell whether its error can be estimated.
constexpr Index replicates_for_means = 64;

// A number that nothing was drawn for, such as a count of operations: its interval is itself. Never of random draws.
Estimate certain(double value);
// Not measured.
Estimate unmeasured();

// Replicate by replicate, of those that both have; b's only value where b was measured once.
Samples quotients(const Samples& a, const Samples& b);

}  // namespace attnbench
