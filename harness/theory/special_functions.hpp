// Special functions of the closed forms, compiled once, because Boost's headers take seconds to compile in every file.
#pragma once

namespace attnbench {

// Kummer's function 1F1(a; b; x).
double kummer(double a, double b, double x);

// The confluent limit function 0F1(; b; x), b > 0: Gamma(b) |x|^((1-b)/2) times the Bessel function I_{b-1}(2 sqrt(x))
// for x > 0 and J_{b-1}(2 sqrt(-x)) for x < 0.
double hypergeometric_0f1(double b, double x);

// The x with Phi(x) = u, for u clamped to [2^-53, 1 - 2^-53]: |x| <= 8.21.
double normal_quantile(double u);

}  // namespace attnbench
