// Sample moments, accumulated one number at a time and merged in a fixed order.
#pragma once

#include <span>
#include <vector>

namespace attnbench {

// Count, mean and sums of powers of deviations (Pebay 2008: stable one-pass updates), and the share of the largest
// number.
struct Moments {
  double count = 0, mean = 0, m2 = 0, m3 = 0, m4 = 0;
  double sum_of_magnitudes = 0, largest_magnitude = 0;

  void add(double x);
  void merge(const Moments& other);

  double variance() const;        // unbiased; 0 for fewer than two numbers
  double standard_error() const;  // of the mean
  // Standard error of variance(), from the fourth moment: sqrt((mu_4 - (N-3)/(N-1) sigma^4) / N). It reveals heavy
  // tails.
  double variance_standard_error() const;
  // The largest magnitude over the sum of magnitudes: near 1 if one draw decides the mean.
  double share_of_largest() const;
};

Moments moments(std::span<const double> values);

// The z-score of a sample mean. Estimates of exponentials are skewed, and the tail of a plain t-statistic at 4.5
// standard errors would be off by a factor of 3. This is Hall's transformation (1992, JRSS B 54:221), which removes the
// first skewness term. Unlike Johnson's quadratic one it is monotone: a mean that is 60 standard errors off gets such a
// score. A sample without variance scores 0 if it is right and infinity if not.
double score(const Moments& sample, double expected);

}  // namespace attnbench
