// The rules by which a recipe judges a statement. Each takes estimates whose intervals share the verdict's error rate
// and returns HOLDS, REFUTED, OPEN (the intervals do not decide) or DEPENDS (it holds in some settings only).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/statistics/estimate.hpp"
#include "harness/store/verdict.hpp"

namespace attnbench {

// All rulings of the catalogue together err with probability 0.05 at most, if each interval has its nominal coverage
// (Bonferroni). A statement that is MEASURED decides nothing and so does not count among them; its interval has the
// same coverage. Each verdict has the same share however few recipes run, so a verdict does not depend on what else was
// run.
constexpr size_t most_rulings = 300;
constexpr double verdict_error_rate = 0.05 / most_rulings;

// One of the comparisons that a verdict is based on.
struct Comparison {
  std::string what;  // "m = 64, scale 0.5"
  Estimate estimate;
};

// HOLDS when all estimates lie below the bound, REFUTED when one lies above it. The finding gives the numbers of the
// comparison whose interval is nearest to the bound, or of the one that failed or decided least.
Finding all_below(double bound, const std::vector<Comparison>& comparisons);
Finding all_above(double bound, const std::vector<Comparison>& comparisons);
// HOLDS when all intervals lie between the bounds, REFUTED when one lies outside.
Finding all_between(double low, double high, const std::vector<Comparison>& comparisons);
// HOLDS when all intervals contain the value and none is wider than +-resolution, REFUTED when one excludes the value.
Finding all_contain(double value, double resolution, const std::vector<Comparison>& comparisons);
// A number and the bound that is claimed for it, such as the rank of a matrix. Nothing is estimated.
struct Bounded {
  std::string what;
  double value, bound;
};
// HOLDS when every value is at most its bound, REFUTED when one is not. The finding gives the numbers of the greatest
// violation, or of the value nearest to its bound.
Finding all_at_most(const std::vector<Bounded>& all);

// A part of the settings that a statement covers, such as one input scale.
struct Region {
  enum class Rule { all, some };

  std::string name;
  std::vector<Comparison> comparisons;
  std::optional<double> coordinate = {};  // its place on an axis, if the regions have one
  Rule rule = Rule::all;                  // some: one comparison below the bound is enough
};
// In which regions the comparisons lie below the bound. HOLDS: in every region. REFUTED: in none. DEPENDS: it holds
// significantly in some and fails significantly in others. If regions with coordinates hold on one side and fail on the
// other, the finding gives the boundary, interpolated on logarithmic scales and named by `axis`. For more than four
// regions without coordinates it gives counts, with the names of up to six. Every comparison is kept.
//
// equal_within: a region is equal if its intervals contain the bound and lie within that factor of it. Equal is neither
// below nor above, so it counts against the statement. With the default of 1 such a region is undecided, and more
// replicates could only prove a difference too small to matter.
Finding below_where(double bound, const std::vector<Region>& regions, const std::string& axis = {},
                    double equal_within = 1);
Finding above_where(double bound, const std::vector<Region>& regions, const std::string& axis = {},
                    double equal_within = 1);

// For statements whose source gives no threshold: the values with their intervals, and how many lie significantly below
// each threshold that a reader might choose (none given: the values alone).
Finding values_of(const std::vector<Comparison>& comparisons, const std::vector<double>& thresholds = {});

// Combines a recipe's verdicts with several seeds into one verdict per statement. A statement that the seeds do not
// decide alike is OPEN, and its numbers say which seeds gave which ruling. Seeds are counted from 1.
std::vector<Verdict> agreed(const std::vector<std::vector<Verdict>>& by_seed);

}  // namespace attnbench
