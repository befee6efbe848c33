// Rounding in float, as an instance in double shows it.
#pragma once

#include "harness/claims/drawing.hpp"

namespace attnbench {

// A bound on the error of a weight in float, relative to itself: its exponents, of magnitude up to L, are dot products
// of length d, each off by d eps L; sums over features and keys add eps a term, in numerator and normaliser. L is read
// from the head and from the state's tensors that tokens are multiplied with.
double float_rounding(const Probe& one, const Tensors& state);

// Compares float's rows with those of the same draw in double. Leaves out rows whose normaliser rounding may change by
// a tenth of itself, and rows where attend in double jumps: moving the inputs by 32 units of float's rounding moves
// such a row by at least half of the difference and, unless it has a kernel, by far more than 32 times what one unit
// does.
Result compare_with_double(const std::string& claim, const std::string& tested, const Matrix<double>& got,
                           const Approximation<double>& exact, const Probe& one, const std::vector<double>& condition,
                           double rounding);

// How much rounding may grow in each row, in units of float's: what random changes of all inputs by one unit do to the
// row in double, and the square root of the number of terms that are added up (keys, and rows of the state's tensors;
// keys beyond 130 count an eighth of that) times the row's cancellation.
std::vector<double> rounding_conditions(const Approximation<double>& exact, const Probe& one, const Tensors& state);

// Compares rows in a type whose numbers lie `spacing` apart at 1 with those of the same draw in double: how far they
// are off, over what random changes of Q and K by that part of themselves do in double and one spacing of V.
Result compare_coarse_with_double(const std::string& claim, const std::string& tested, const Matrix<double>& got,
                                  const Approximation<double>& exact, const Probe& one, double spacing, double allowed);

}  // namespace attnbench
