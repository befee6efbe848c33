// Curves over a size, read in logarithms.
#pragma once

#include <span>

namespace attnbench {

// a of the power law y = c x^a: the least-squares slope of log y over log x. At least two points, all above 0.
double exponent(std::span<const double> x, std::span<const double> y);

// The x beyond which y stays at or above 1, y between neighbouring points being a power law: 0 when it is so from the
// first point on, infinity when not even the last point is. x ascending, all above 0.
double last_rise_through_one(std::span<const double> x, std::span<const double> y);

}  // namespace attnbench
