// Compares two samples.
#pragma once

#include <vector>

#include "harness/statistics/intervals.hpp"

namespace attnbench {

// Welch's t interval of mean(b) - mean(a) for independent samples of unequal variances (Welch 1947, Biometrika 34:28).
// The difference itself if neither varies. At least two values each.
Interval difference_interval(const Moments& a, const Moments& b, double error_rate);

// Distribution-free interval of the factor c for which b is distributed as c a. It contains the factors that the test
// of Mann and Whitney (1947, Annals of Mathematical Statistics 18:50) does not reject, and its ends are two ratios b_j
// / a_i (Hodges and Lehmann 1963, ibid. 34:598). It misses with error_rate at most if the samples are large enough for
// that (enough_for_ratio). Values above 0.
Interval ratio_interval(const std::vector<double>& a, const std::vector<double>& b, double error_rate);

// Whether these numbers of values suffice for an interval of that error rate: the whole range of ratios misses with
// twice the probability that all of one sample lie below the other.
bool enough_for_ratio(size_t of_a, size_t of_b, double error_rate);

}  // namespace attnbench
