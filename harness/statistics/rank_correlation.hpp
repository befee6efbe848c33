// Spearman's rank correlation, with an interval.
#pragma once

#include <span>
#include <vector>

#include "harness/statistics/intervals.hpp"

namespace attnbench {

// The correlation of the ranks of x and y, ties sharing their mean rank: in [-1, 1]; NaN for fewer than two points or
// when all of x or all of y are equal.
double rank_correlation(std::span<const double> x, std::span<const double> y);

// Fisher's z with variance 1.06 / (count - 3) for independent points (Fieller, Hartley and Pearson 1957), which is near
// for |correlation| < 0.8; [-1, 1] for fewer than four points.
Interval rank_correlation_interval(double correlation, size_t count, double error_rate);

// The same for points that depend on each other: those of one text, and those of one head. A clustering names each
// point's cluster; two of them may cross (12 heads times 32 texts), and points that share a cluster in either may be
// dependent.
// Fisher's z with the variance of jackknives that leave out one cluster after the other: of two clusterings the sum of
// both less that of their common cells (Cameron, Gelbach and Miller 2011, Journal of Business & Economic Statistics
// 29:238), at least the larger of both and the variance for independent points; t quantiles of the fewest clusters less
// one. [-1, 1] for fewer than three clusters or when a correlation is NaN.
// 12 heads times 32 texts, normal, 3000 draws a law, misses over the nominal rate on the worse side, at 5 % and 1 %: at
// most 1.2 where heads and texts hold a third of the variance each (correlation 0 or -0.8), or either holds 0.8 and
// correlation is 0; 1.5 where a third each is correlated by -0.5 (heads) and 0.5 (texts). Fieller's interval misses 7
// to 54 times as often. Where heads hold 0.8 and are correlated by -0.9 it is 1.7 and 2.6, and 4.7 at 1e-3: twelve
// clusters that decide most are too few for small rates. There take the correlation over heads within each text, and
// judge the median over texts.
Interval clustered_rank_correlation_interval(std::span<const double> x, std::span<const double> y,
                                             std::span<const std::vector<size_t>> clusterings, double error_rate);

}  // namespace attnbench
