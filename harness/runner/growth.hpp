// How time grows with the sequence length, and where one method overtakes another.
#pragma once

#include <string>
#include <vector>

#include "harness/runner/judgement.hpp"

namespace attnbench {

// One method's cells, one per length.
struct Curve {
  std::string name;
  Cells cells;
};

// A law of growth, given as the exponents that a curve may have.
struct GrowthLaw {
  std::string name;
  double least, most;
};
// All recipes use the same rule: n and n log n bound an exponent from above, n^2 from below, n^1.5 from both sides,
// each with 0.2 to spare, because caches may raise linear time by 15 % per doubling (2^0.2), and fixed costs may lower
// quadratic time as much. From n = 4096 on, n log n grows as n^1.12.
extern const GrowthLaw linear_growth, n_log_n_growth, n_root_n_growth, n_root_n_growth_at_most, quadratic_growth;
const std::vector<GrowthLaw>& growth_laws();  // all of them

// HOLDS if the exponent of every curve, over all its lengths, lies within the law. A block holds one turn of each
// length and gives one exponent, so the interval includes a slow drift of the machine. Curves whose lengths were
// measured in different sessions are not judged. The numbers are the exponents of time and of FLOPs.
Judgement growth(Statement statement, const GrowthLaw& law, const std::vector<Curve>& curves,
                 const std::string& metric = "seconds");

// The least-squares exponent of a curve in a column, one per block of turns, or per replicate that all cells have.
Samples exponents(const Cells& curve, const std::string& metric = "seconds", const std::string& along = "n");

// The curve's cells in order of increasing n.
std::vector<Cells> by_length(const Cells& curve);
Index length_of(const Cells& one);

}  // namespace attnbench
