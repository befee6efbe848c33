// Tests of expectations over draws. Each finds its least effect with probability 0.999, and takes as many draws as that
// needs.
#pragma once

#include "harness/claims/result.hpp"
#include "harness/linalg/context.hpp"

namespace attnbench {

// A normal test with threshold t finds an effect of t + 3.1 standard errors with probability 0.999.
constexpr double power_quantile = 3.1;
// The most numbers (entries of their state) that the draws of one subject in one dimension may generate. 2^28 take
// half a minute of a core, at 0.1 microseconds a number with the QR factors of orthogonal ensembles; PolySketch needs a
// sixth of it, and nearly all others less than a hundredth.
constexpr double default_work = 268'435'456;

// How far a number without variance may be off, in units of its natural scale. Rounding is 1e-12; an epsilon of 1e-4 in
// a method gives 1e-4 and more.
constexpr double exact_tolerance = 1e-9;

// A number that each draw gives, with its claimed expectation.
struct DrawnNumber {
  std::string claim, tested;
  double expected, least_effect;
  double variance;  // of that number, by a closed form; 0: not known
};

// Writes the numbers of draw i, one for each test. Called from several threads.
using NumbersOfDraw = std::function<void(Index i, std::span<double> numbers)>;

// A result for each test, in order. numbers_of_state: how many random numbers a draw generates; with the limit `work`
// they bound the draws. threshold: on |z|, for the whole family.
ClaimResults test_over_draws(const std::vector<DrawnNumber>& tests, const NumbersOfDraw& draw, double numbers_of_state,
                             double threshold, double work, Context& context);

}  // namespace attnbench
