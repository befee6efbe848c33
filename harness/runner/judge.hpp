// The rules by which a recipe judges a statement. Each takes estimates whose intervals share the verdict's error rate
// and says PASS, FAIL, AMBIGUOUS (the intervals decide nothing) or CONDITIONAL (where it holds).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/statistics/estimate.hpp"
#include "harness/store/verdict.hpp"

namespace attnbench {

// All verdicts of the catalogue together err with probability 0.05 at most, if each interval has its nominal coverage
// (Bonferroni). The share is the same however few recipes run: a verdict does not depend on what else was run.
constexpr size_t most_verdicts = 250;
constexpr double verdict_error_rate = 0.05 / most_verdicts;

// One of the comparisons that a verdict rests on.
struct Comparison {
  std::string what;  // "m = 64, scale 0.5"
  Estimate estimate;
};

// PASS when all lie below the bound, FAIL when one lies above it. The numbers are those of the one whose
// interval is nearest to the bound, or of the one that failed or decided least.
Finding all_below(double bound, const std::vector<Comparison>& comparisons);
Finding all_above(double bound, const std::vector<Comparison>& comparisons);
// PASS when all intervals lie between the bounds, FAIL when one lies outside.
Finding all_between(double low, double high, const std::vector<Comparison>& comparisons);
// PASS when all intervals hold the value and none is wider than the value +- resolution, FAIL when one does not hold
// it.
Finding all_contain(double value, double resolution, const std::vector<Comparison>& comparisons);
// Whether some candidate lies below the bound. PASS when one surely does; FAIL when *all* surely lie above it, which
// takes the least lower end. The intervals must hold for all candidates at once.
Finding some_below(double bound, const std::vector<Comparison>& candidates);

// One of the numbers that a bound is claimed for, such as the rank of a matrix: nothing is estimated.
struct Bounded {
  std::string what;
  double value, bound;
};
// PASS when every value is at most its bound, FAIL when one is not. The numbers are those of the greatest violation, or
// of the one nearest to its bound.
Finding all_at_most(const std::vector<Bounded>& all);

// A part of the settings that a statement is about, such as one input scale.
struct Region {
  enum class Rule { all, some };

  std::string name;
  std::vector<Comparison> comparisons;
  std::optional<double> coordinate = {};  // its place on an axis, where regions lie on one
  Rule rule = Rule::all;                  // some: the region holds when one of its comparisons lies below
};
// Where the comparisons lie below the bound: PASS in every region, FAIL in none, CONDITIONAL when it surely holds
// somewhere and surely fails elsewhere. Regions with coordinates that hold on one side and fail on the other give the
// boundary, interpolated on logarithmic scales, in the words of `axis`; of more than four regions without coordinates
// the counts are given, with the names of up to six. Every comparison is kept. equal_within: a region whose intervals
// hold the bound and lie within that factor of it is equal, and what is equal is neither below nor above: it counts
// against the statement. Without it (1) such a region is undecided, and more replicates would only prove a difference
// that is of no use.
Finding below_where(double bound, const std::vector<Region>& regions, const std::string& axis = {},
                    double equal_within = 1);
Finding above_where(double bound, const std::vector<Region>& regions, const std::string& axis = {},
                    double equal_within = 1);

// For statements whose source gives no threshold: the values with their intervals, and how many regions lie below each
// of the thresholds that a reader might choose (none: the values alone).
Finding values_of(const std::vector<Comparison>& comparisons, const std::vector<double>& thresholds = {});

// One verdict a statement, from a recipe's verdicts with each of several seeds: a statement that is not decided alike
// with all of them is AMBIGUOUS, and its numbers say which seeds said what. Seeds are counted from 1.
std::vector<Verdict> agreed(const std::vector<std::vector<Verdict>>& by_seed);

}  // namespace attnbench
