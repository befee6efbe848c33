// How a recipe judges its statement: it reads what was measured, compares replicate by replicate with a stated error
// rate, and says PASS, FAIL, AMBIGUOUS (the intervals decide nothing: how many more replicates would) or CONDITIONAL
// (where it holds).
#pragma once

#include <nlohmann/json.hpp>
#include <set>

#include "harness/runner/plan.hpp"
#include "harness/statistics/intervals.hpp"

namespace attnbench {

using Samples = std::map<Index, double>;  // by replicate, or by block of turns

// A cell of a recipe as its conditions name it, and the one that was run: the same but for its seed and settings when
// the recipe is varied.
struct RecipeCell {
  Cell asked, run;
};

// What the store has of a recipe's own cells: nothing of other runs or of older sources.
class Results {
 public:
  Results(const Store& store, const std::vector<RunRequest>& requests);
  Results(const Store& store, const std::vector<RecipeCell>& cells);

  std::vector<std::string> keys() const;

  // A scalar of the one cell that agrees with every condition, in the words of docs/figures.md: columns of the table
  // `cell` and parameters; the experiment by its name or its spec, method and input by their specs in any spelling.
  // Empty unless every replicate has it: those that could be estimated are no sample of all. Throws std::logic_error
  // when no cell agrees, or several do.
  Samples scalar(const nlohmann::json& where, const std::string& metric) const;
  // The elements of an array of that cell, of all replicates: time samples, one a block. Empty likewise.
  std::vector<double> array(const nlohmann::json& where, const std::string& metric) const;

 private:
  void add(const RecipeCell& cell);
  struct Row {
    nlohmann::json columns;
    std::string key;
  };
  const std::string& key_of(const nlohmann::json& where) const;

  const Store& store_;
  std::vector<Row> rows_;
  std::set<std::string> asked_;
};

// A number with the interval that misses it with probability error_rate; the interval is everything (minus to plus
// infinity) for fewer replicates or samples than an interval of that error rate takes.
struct Estimate {
  double value = 0;
  Interval interval = {};
  Index replicates = 0;

  bool below(double bound) const { return interval.high < bound; }
  bool above(double bound) const { return interval.low > bound; }
  std::string text() const;  // "0.42 (0.39 to 0.45)"
};

// Mean over replicates, Student's t.
Estimate mean(const Samples& samples, double error_rate);
// a / b of the replicates that both have and where both are above zero: the exponential of the mean log ratio and of
// its Student t interval.
Estimate ratio(const Samples& a, const Samples& b, double error_rate);

// Median of samples that may be infinite (beyond what was measured), with the distribution-free interval between two
// order statistics: of fewer than log2(2 / error_rate) samples no pair is sure enough, and the interval is everything.
Estimate median_of(std::vector<double> samples, double error_rate);

// All verdicts of the catalogue together err with probability 0.05 at most (Bonferroni), however few of them are asked
// for: a verdict does not depend on what else was run.
constexpr size_t most_verdicts = 200;
constexpr double verdict_error_rate = 0.05 / most_verdicts;

// One of the comparisons that a verdict rests on; each has its share of the verdict's error rate.
struct Comparison {
  std::string what;  // "m = 64, scale 0.5"
  Estimate estimate;
};
inline double share_of_error_rate(size_t comparisons) { return verdict_error_rate / static_cast<double>(comparisons); }

// PASS when all lie below the bound, FAIL when one lies above it, AMBIGUOUS else. The numbers are those of the
// greatest, or of the one that failed or decided least.
Verdict all_below(double bound, const Statement& statement, const std::vector<Comparison>& comparisons);
// PASS when all intervals hold the value and none is wider than the value +- resolution, FAIL when one does not hold
// it, AMBIGUOUS else.
Verdict all_contain(double value, double resolution, const Statement& statement,
                    const std::vector<Comparison>& comparisons);

// A number that nothing was drawn for, such as the rank of one matrix: its interval is itself.
inline Estimate certain(double value) { return {value, {value, value}, 1}; }

// One of the matrices that a bound is claimed for.
struct Bounded {
  std::string what;
  double value, bound;
};
// PASS when every value is at most its bound, FAIL when one is not: of matrices that are there nothing is estimated,
// and one that breaks a theorem breaks it. The numbers are those of the one nearest to its bound, or farthest beyond
// it.
Verdict all_at_most(const Statement& statement, const std::vector<Bounded>& all);

// A part of the settings that a statement is about, such as one input scale.
struct Region {
  std::string name;
  std::vector<Comparison> comparisons;
};
// Where all lie below the bound: PASS when they do in every region; CONDITIONAL, naming the regions, when something
// surely lies below and something surely above; FAIL when all lie above it everywhere; AMBIGUOUS else. The numbers are
// the ranges of the estimates.
Verdict below_where(double bound, const Statement& statement, const std::vector<Region>& regions);

// One verdict a statement, from a recipe's verdicts with each of several seeds: a statement that is not decided alike
// with all of them is AMBIGUOUS, and its numbers say which seeds said what. Seeds are counted from 1.
std::vector<Verdict> agreed(const std::vector<std::vector<Verdict>>& by_seed);

}  // namespace attnbench
