// How time grows with the sequence length, and where one method overtakes another: shared by the recipes that time.
#pragma once

#include <string>
#include <vector>

#include "harness/runner/recipe.hpp"

namespace attnbench {

// Blocks and turns of all recipes that time. 32 blocks give a median an interval down to an error rate of 2^-31; at
// 1e-5 the interval excludes four disturbed blocks at each end. The short turns of quick sizes scatter more: 48 blocks
// exclude ten. A recipe with dozens of comparisons uses 48 at full size as well, which exclude eight.
std::string turns(const Recipe& recipe, int blocks_at_full_size = 32);

// Seconds against the sequence length, with the fitted exponent.
Panel time_panel(std::string title, const Cells& cells, std::string label = "seconds per call");
// Speedup over softmax against the sequence length, beside the ratio of FLOPs, with the crossover.
Panel speedup_panel(std::string title, const Cells& cells);

// One method's cells, one per length.
struct Curve {
  std::string name;
  Cells cells;
};
// A curve for each of the methods, named by its spec as given.
std::vector<Curve> curves_of(const Cells& cells, const std::vector<std::string>& methods);

// The finding, with a remark if most turns of a curve at one of its lengths were disturbed. The ruling stays the same:
// both sides of each ratio ran in the same blocks, so a load slows both, and the interval includes the scatter that it
// causes (docs/engines.md measures the effect of a load).
Finding with_disturbances(Finding finding, const std::vector<Curve>& curves);

// A law of growth, given as the range of factors by which a doubling of n may multiply a number.
struct GrowthLaw {
  std::string name;
  double least, most;
};
// All recipes use the same rule: within 15 % of the law's own factor. Linear time doubles, and cache effects may raise
// that to 2.3; quadratic time quadruples, and fixed costs may lower that to 3.5. The factor of n^1.5 is 2.83, that of
// n log n is 2.17 from 4096 on.
extern const GrowthLaw linear_growth, n_log_n_growth, n_root_n_growth, quadratic_growth;

// HOLDS if every doubling of every curve lies within the law. A block holds one turn of each length, so the interval
// includes a slow drift of the machine. Curves whose lengths were measured in different sessions are not judged. The
// numbers are the exponents of time and of FLOPs over the last three lengths.
Finding grows_as(const Recipe& recipe, const GrowthLaw& law, const std::vector<Curve>& curves,
                 const std::string& metric = "seconds");

// The least-squares exponent of a curve, one per block of turns.
std::vector<double> exponents(const Cells& curve, const std::string& metric = "seconds");

// The n from which `speedup` stays at or above 1, one per block: 0 if it does from the first length on, infinity if it
// does not at the last.
std::vector<double> crossings(const Cells& curve, const std::string& speedup = "speedup");

// The last three lengths, from which a figure's legend gets its exponent.
Cells last_three(const Cells& curve);

// The curve's cells in order of increasing n.
std::vector<Cells> by_length(const Cells& curve);
Index length_of(const Cells& one);

}  // namespace attnbench
