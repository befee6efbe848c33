// How time or memory grows with the sequence length, as the recipes that time judge it: the exponent a of n^a over
// three lengths, and only where these lie on a line in logarithms. Before that a fixed cost, or a cache that the longer
// ones outgrow, is read as an exponent.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "harness/runner/recipe.hpp"
#include "harness/statistics/power_law.hpp"

namespace attnbench {

// The turns of all recipes that time, so that what two of them want is measured once. 17 blocks are the least for 16
// comparisons a verdict, between the least and the greatest; of 24, one at each end may have been disturbed.
inline std::string turns(RecipeSize size) {
  if (size == RecipeSize::smoke) return "blocks=2,turn=1";
  return size == RecipeSize::quick ? "blocks=24,turn=1" : "blocks=24,turn=10";
}

// The lengths that exponents are fitted over: the last three.
inline std::array<Index, 3> last_three(const std::vector<Index>& lengths) {
  const size_t count = lengths.size();
  return {lengths.at(count - 3), lengths.at(count - 2), lengths.at(count - 1)};
}

// Seconds against the sequence length, with the fitted exponent.
inline Panel time_panel(std::string title, nlohmann::json where, std::string label = "seconds per call") {
  return {.title = std::move(title),
          .where = std::move(where),
          .x = {"n"},
          .x_label = "sequence length n",
          .x_scale = "log2",
          .y = "seconds",
          .y_label = std::move(label),
          .y_scale = "log10",
          .interval = "median",
          .slope = true};
}

// How many times faster than softmax against the sequence length, beside the ratio of FLOPs, with the crossover.
inline Panel speedup_panel(std::string title, nlohmann::json where) {
  return {.title = std::move(title),
          .where = std::move(where),
          .x = {"n"},
          .x_label = "sequence length n",
          .x_scale = "log2",
          .y = "speedup",
          .y_label = "times faster than softmax",
          .y_scale = "log2",
          .interval = "median",
          .theory = "speedup_by_flops",
          .crossing = true};
}

struct Growth {
  std::string method;
  Estimate exponent;     // median over blocks of turns
  double bend = 0;       // log of the middle length's number less that of the line through the outer two, a median
  double disturbed = 0;  // share of the turns

  bool measured() const { return exponent.replicates > 0; }
  bool is_power() const { return std::abs(bend) <= 0.05; }
  // Lengths are measured one after the other: a load that came in between would be read as an exponent.
  bool is_quiet() const { return disturbed <= 0.5; }
  // The exponent where it is one; else what decides nothing.
  Estimate judged() const {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (measured() && is_power() && is_quiet()) return exponent;
    return {exponent.value, {-infinity, infinity}, exponent.replicates};
  }
  std::string text() const {
    if (!measured()) return method + ": not measured";
    std::string words = fmt::format("{}: n^{}", method, exponent.text());
    if (!is_power())
      words += fmt::format(", no power of n yet: the middle length is {:+.0f} % off the line", 100 * std::expm1(bend));
    if (!is_quiet()) words += fmt::format(", {:.0f} % of the turns disturbed by other processes", 100 * disturbed);
    return words;
  }
};

// Of the cell that agrees with `where` at each of three lengths. A metric with a sample a block, such as seconds, gives
// one exponent a block; of a number measured once, such as peak_bytes, the exponent is what it is.
inline Growth growth(const Results& results, nlohmann::json where, const std::array<Index, 3>& lengths,
                     const std::string& metric, double error_rate) {
  Growth found{.method = where.at("method").get<std::string>(), .exponent = {}};
  std::array<double, 3> n{};
  std::array<std::vector<double>, 3> samples;
  double turns = 0;
  for (size_t i = 0; i < 3; ++i) {
    n[i] = static_cast<double>(lengths[i]);
    where["n"] = lengths[i];
    samples[i] = results.array(where, metric);
    if (samples[i].empty())
      for (const auto& [replicate, value] : results.scalar(where, metric)) samples[i].push_back(value);
    for (const double mark : results.array(where, "disturbed")) {
      turns += 1;
      found.disturbed += mark;
    }
  }
  if (turns > 0) found.disturbed /= turns;
  const size_t blocks = std::min({samples[0].size(), samples[1].size(), samples[2].size()});
  if (blocks == 0) return found;
  const double share = std::log(n[1] / n[0]) / std::log(n[2] / n[0]);  // where the middle stands on the line
  std::vector<double> exponents, bends;
  for (size_t b = 0; b < blocks; ++b) {
    const std::array<double, 3> y{samples[0][b], samples[1][b], samples[2][b]};
    exponents.push_back(exponent(n, y));
    bends.push_back(std::log(y[1] / y[0]) - share * std::log(y[2] / y[0]));
  }
  found.exponent = blocks == 1 ? certain(exponents[0]) : median_of(exponents, error_rate);
  found.bend = median_of(bends, error_rate).value;
  return found;
}

// Of each of the methods, over the last three of the lengths; of none where there are fewer, as at smoke sizes.
inline std::vector<Growth> growths(const Results& results, nlohmann::json where,
                                   const std::vector<std::string>& methods, const std::vector<Index>& lengths) {
  std::vector<Growth> found;
  if (lengths.size() < 3) return found;
  for (const auto& method : methods) {
    where["method"] = method;
    found.push_back(growth(results, where, last_three(lengths), "seconds", share_of_error_rate(methods.size())));
  }
  return found;
}

// A verdict on some exponents, with all of them as its numbers. sign: -1 when they are claimed to lie above the bound.
inline Verdict judge_exponents(double sign, double bound, const Statement& statement, const std::vector<Growth>& all) {
  if (all.empty())
    return {Verdict::Outcome::ambiguous, statement, "an exponent takes three lengths: --quick or --full"};
  std::vector<Comparison> comparisons;
  std::vector<std::string> words;
  for (const Growth& one : all) {
    Estimate a = one.judged();
    if (sign < 0) a = {-a.value, {-a.interval.high, -a.interval.low}, a.replicates};
    comparisons.push_back({one.method, a});
    words.push_back(one.text());
  }
  Verdict verdict = all_below(sign * bound, statement, comparisons);
  verdict.numbers = fmt::format("{}", fmt::join(words, "; "));
  return verdict;
}

inline Verdict exponents_below(double bound, const Statement& statement, const std::vector<Growth>& all) {
  return judge_exponents(1, bound, statement, all);
}
inline Verdict exponents_above(double bound, const Statement& statement, const std::vector<Growth>& all) {
  return judge_exponents(-1, bound, statement, all);
}

}  // namespace attnbench
