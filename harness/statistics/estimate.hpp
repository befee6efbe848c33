// Numbers with intervals: means and medians of replicates, and ratios between the replicates of two methods.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/core/problem.hpp"
#include "harness/statistics/intervals.hpp"

namespace attnbench {

using Samples = std::map<Index, double>;  // by replicate

// A number with an interval that misses the truth with probability error_rate at most.
struct Estimate {
  double value = 0;
  Interval interval = {};
  Index count = 0;  // replicates, or blocks of turns

  bool below(double bound) const { return interval.high < bound; }
  bool above(double bound) const { return interval.low > bound; }
  bool measured() const { return count > 0; }
  std::string text() const;  // "0.42 (0.39 to 0.45)"
};

// Each of these takes the probability with which its interval may miss. Without samples (a cell failed) the interval is
// the whole line and the count is 0. Too few samples for an interval of that error rate are a mistake in the plan and
// throw std::logic_error. At an error rate of 1 (smoke sizes) the interval is the number itself.

// The mean over at least replicates_for_means replicates, each an average of 32 draws or more, by interval_of_averages.
// The interval is the whole line for a significantly skewed sample. median_ratio needs no such assumption.
Estimate mean(const Samples& samples, double error_rate);
// The median, with a distribution-free interval between two order statistics. Samples may be infinite.
Estimate median_of(std::vector<double> samples, double error_rate);
Estimate median_of(const Samples& samples, double error_rate);
// The median over replicates of a / b, distribution-free: "in at least half of the draws a / b lies below". 0 / 0
// counts as 1. If b was measured once, every replicate of a is divided by that number.
Estimate median_ratio(const Samples& a, const Samples& b, double error_rate);
// The exponential of the mean of log(a / b), for estimates of positive expectations such as mean squared errors. Throws
// std::logic_error for a number that is not above 0.
Estimate mean_ratio(const Samples& a, const Samples& b, double error_rate);
// The probability of an event that occurred in `hits` of `draws` draws (Clopper and Pearson 1934).
Estimate share_of(Index hits, Index draws, double error_rate);
// With fewer replicates of more draws each, a skewed sample could go unnoticed. With more, each replicate would have
// too few draws to tell whether its error can be estimated.
constexpr Index replicates_for_means = 64;

// A number computed without draws, such as a count of operations: the interval is the number itself. Never use it for
// random draws.
Estimate certain(double value);
// The estimate of a cell that was not measured.
Estimate unmeasured();

// Quotients for each replicate that both have. If b was measured once, its only value divides all.
Samples quotients(const Samples& a, const Samples& b);

// The least and the greatest of several numbers. The interval runs from the extreme lower end to the extreme upper end,
// which is valid because the intervals hold simultaneously.
Estimate least_of(const std::vector<Estimate>& all);
Estimate greatest_of(const std::vector<Estimate>& all);

}  // namespace attnbench
