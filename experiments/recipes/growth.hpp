// How time grows with the sequence length, and where one method overtakes another, as the recipes that time judge it.
#pragma once

#include <string>
#include <vector>

#include "harness/runner/recipe.hpp"

namespace attnbench {

// Blocks and turns of all recipes that time. 32 blocks give a median an interval down to an error rate of 2^-31, and at
// 1e-5 leave four disturbed blocks at each end out. The short turns of quick sizes scatter more: 48 blocks leave ten
// out. A recipe with dozens of comparisons asks for 48 at full size as well, of which it leaves eight out.
std::string turns(const Recipe& recipe, int blocks_at_full_size = 32);

// Seconds against the sequence length, with the fitted exponent.
Panel time_panel(std::string title, const Cells& cells, std::string label = "seconds per call");
// How many times faster than softmax against the sequence length, beside the ratio of FLOPs, with the crossover.
Panel speedup_panel(std::string title, const Cells& cells);

// One method's cells, one a length.
struct Curve {
  std::string name;
  Cells cells;
};
// A curve for each of the methods, in their spelling.
std::vector<Curve> curves_of(const Cells& cells, const std::vector<std::string>& methods);

// The finding, which says so where most turns of a curve at one of its lengths were disturbed. It does not change the
// ruling: both sides of each ratio ran in the same blocks, so that a load slows both, and the scatter that it makes is
// in the interval (docs/engines.md measures what a load does).
Finding with_disturbances(Finding finding, const std::vector<Curve>& curves);

// A law of growth as the factor by which a doubling of n may multiply a number.
struct GrowthLaw {
  std::string name;
  double least, most;
};
// The one rule for all recipes: within 15 % of the law's own factor. Linear time doubles, which caches stretch to 2.3
// at most; quadratic time quadruples, which fixed costs shrink to 3.5 at least. n^1.5 has the factor 2.83, and n log
// n 2.17 from 4096 on.
extern const GrowthLaw linear_growth, n_log_n_growth, n_root_n_growth, quadratic_growth;

// PASS when every doubling of every curve lies within the law. Blocks hold one turn of each length, so that a slow
// drift of the machine is in the interval. Curves whose lengths were measured in different sessions decide nothing. The
// numbers are the exponents over the last three lengths, of time and of FLOPs.
Finding grows_as(const Recipe& recipe, const GrowthLaw& law, const std::vector<Curve>& curves,
                 const std::string& metric = "seconds");

// The least-squares exponent of a curve, one a block of turns.
std::vector<double> exponents(const Cells& curve, const std::string& metric = "seconds");

// The n from which on `speedup` stays at or above 1, one a block: 0 where it does from the first length on, infinity
// where it does not at the last.
std::vector<double> crossings(const Cells& curve, const std::string& speedup = "speedup");

// One cell's metric over another's, one a block of turns.
std::vector<double> times(const Cells& one, const Cells& other, const std::string& metric = "seconds");

// The last three lengths: the exponent in a figure's legend is theirs.
Cells last_three(const Cells& curve);

// The curve's cells by rising n.
std::vector<Cells> by_length(const Cells& curve);
Index length_of(const Cells& one);

}  // namespace attnbench
