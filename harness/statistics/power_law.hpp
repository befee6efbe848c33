// Curves over a size, evaluated in logarithms.
#pragma once

#include <span>

namespace attnbench {

// The exponent a of the power law y = c x^a: the least-squares slope of log y over log x. At least two points, all
// above 0.
double exponent(std::span<const double> x, std::span<const double> y);

// The x beyond which y stays at or above 1, with y a power law between neighbouring points. 0 if it does so from the
// first point on, infinity if not even at the last point. x ascending, all above 0.
double last_rise_through_one(std::span<const double> x, std::span<const double> y);

}  // namespace attnbench
