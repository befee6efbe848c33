#include "harness/theory/special_functions.hpp"

#include <algorithm>
#include <boost/math/special_functions/bessel.hpp>
#include <boost/math/special_functions/erf.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <boost/math/special_functions/hypergeometric_1F1.hpp>
#include <cmath>
#include <limits>

namespace attnbench {

namespace {
// 1 + r(0) + r(0) r(1) + ..., until a term adds nothing or the sum exceeds double (where Boost throws).
template <class Ratio>
double sum_of_ratios(const Ratio& ratio) {
  constexpr long double least = std::numeric_limits<double>::epsilon() / 1024,
                        most = std::numeric_limits<double>::max();
  long double term = 1, sum = 1;
  for (long double k = 0; std::abs(term) > least * std::abs(sum) && sum <= most; ++k) sum += term *= ratio(k);
  return static_cast<double>(sum);
}

// e^-y 1F1(-n; b; y), n = 0, 1, ...: a Laguerre polynomial, by its recurrence in n.
double damped_polynomial(long n, double b, double y) {
  long double before = 0, polynomial = 1;
  for (long k = 0; k < n; ++k) {
    const auto degree = static_cast<long double>(k);
    const long double next = ((b + 2 * degree - y) * polynomial - degree * before) / (b + degree);
    before = polynomial;
    polynomial = next;
  }
  return static_cast<double>(polynomial * std::exp(-static_cast<long double>(y)));
}
}  // namespace

// For a, b > 0 and x >= 0 every term is positive and the series loses no precision, while Boost 1.74 throws for odd
// dimensions and large x (1F1(17; 8.5; 100): "tgamma at a negative integer"). For x < 0, 1F1(a; b; x) = e^x 1F1(b-a; b;
// -x) is a polynomial in even dimensions, which takes a twentieth of Boost's time at d = 64.
double kummer(double a, double b, double x) {
  if (x >= 0 && a > 0 && b > 0) return sum_of_ratios([=](long double k) { return (a + k) / (b + k) * x / (k + 1); });
  if (a >= b && b > 0 && a - b == std::floor(a - b)) return damped_polynomial(std::lround(a - b), b, -x);
  return boost::math::hypergeometric_1F1(a, b, x);
}

// For x >= -4 b the terms of the series are at most e^4 and the sum is at least about e^-4, so cancellation costs four
// of long double's 19 digits. Beyond that we use Bessel's function, in long double because J_511(92) is below double's
// range.
double hypergeometric_0f1(double b, double x) {
  if (x >= -4 * b) return sum_of_ratios([=](long double k) { return x / ((b + k) * (k + 1)); });
  const long double order = b - 1, root = std::sqrt(-static_cast<long double>(x));
  const long double scale = std::exp(std::lgamma(order + 1) - order * std::log(root));
  return static_cast<double>(scale * boost::math::cyl_bessel_j(order, 2 * root));
}

double normal_quantile(double u) {
  return -std::sqrt(2.0) * boost::math::erfc_inv(2 * std::clamp(u, 0x1p-53, 1 - 0x1p-53));
}

}  // namespace attnbench
