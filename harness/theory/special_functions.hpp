// Special functions of the closed forms, compiled once: Boost's headers take seconds to compile wherever they stand.
#pragma once

namespace attnbench {

// Kummer's function 1F1(a; b; x).
double kummer(double a, double b, double x);

}  // namespace attnbench
