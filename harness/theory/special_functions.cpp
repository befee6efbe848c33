#include "harness/theory/special_functions.hpp"

#include <boost/math/special_functions/hypergeometric_1F1.hpp>
#include <limits>

namespace attnbench {

namespace {
// For a, b > 0 and x >= 0 every term is positive: the series loses nothing, and overflows to infinity where Boost
// throws.
double positive_series(double a, double b, double x) {
  long double term = 1, sum = 1;
  for (long double k = 0; term > sum * std::numeric_limits<double>::epsilon() / 1024; ++k) {
    term *= (a + k) / (b + k) * x / (k + 1);
    sum += term;
  }
  return static_cast<double>(sum);
}
}  // namespace

// Boost 1.74 throws for odd dimensions and large positive x (1F1(17; 8.5; 100): "tgamma at a negative integer").
double kummer(double a, double b, double x) {
  return x >= 0 && a > 0 && b > 0 ? positive_series(a, b, x) : boost::math::hypergeometric_1F1(a, b, x);
}

}  // namespace attnbench
