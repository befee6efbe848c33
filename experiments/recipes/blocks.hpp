// Numbers of blocks of turns: what is compared block by block has one number a block.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "harness/runner/recipe.hpp"

namespace attnbench {

// a / b.
inline std::vector<double> ratios(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> all;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) all.push_back(a[i] / b[i]);
  return all;
}

// How time grows with the length, from turns at two lengths.
struct Growth {
  std::vector<double> exponents;  // a of time = c n^a, one a block of turns
  double disturbed = 0;           // share of the turns

  // How far it stays below n^2.
  std::vector<double> below_square() const {
    std::vector<double> all = exponents;
    for (double& exponent : all) exponent = 2 - exponent;
    return all;
  }
};

// where: the cells but for n.
inline Growth growth_of_time(const Results& results, nlohmann::json where, Index first, Index last) {
  const auto at = [&](Index n, const char* metric) {
    where["n"] = n;
    return results.array(where, metric);
  };
  const auto before = at(first, "seconds"), after = at(last, "seconds");
  const double log_n = std::log(static_cast<double>(last) / static_cast<double>(first));
  Growth growth{ratios(after, before)};
  for (double& a : growth.exponents) a = std::log(a) / log_n;
  double turns = 0;
  for (const Index n : {first, last})
    for (const double mark : at(n, "disturbed")) {
      turns += 1;
      growth.disturbed += mark;
    }
  if (turns > 0) growth.disturbed /= turns;
  return growth;
}

// Lengths are measured one after the other: a load that came in between reads as growth, with a narrow interval, so
// that nothing is decided when most turns were disturbed.
inline Verdict unless_disturbed(Verdict verdict, const std::vector<Growth>& all) {
  double most = 0;
  for (const Growth& growth : all) most = std::max(most, growth.disturbed);
  if (most <= 0.5) return verdict;
  verdict.outcome = Verdict::Outcome::ambiguous;
  verdict.numbers += fmt::format("; {:.0f} % of the turns were disturbed by other processes", 100 * most);
  return verdict;
}

}  // namespace attnbench
