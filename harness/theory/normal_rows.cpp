#include "harness/theory/normal_rows.hpp"

#include <boost/math/quadrature/gauss.hpp>
#include <cmath>

#include "harness/theory/special_functions.hpp"

namespace attnbench {

double normal_moment(Index d, double t, double alpha) {
  const double width = 1 - 2 * alpha;
  return std::exp(t / (2 * width) - static_cast<double>(d) / 2 * std::log(width));
}

double chi_pair_moment(Index dimensions, double t, double cosine, double alpha) {
  const double d = static_cast<double>(dimensions), width = 1 - 2 * alpha, x = t / (2 * width);
  const double tilt = std::pow(width, -d);
  if (cosine == 0) return tilt * kummer(d, d / 2, x);
  // u = 2 theta in [0, pi], symmetric about pi / 2. The integrand is entire, so a fixed Gauss rule converges
  // geometrically: 64 points have a relative error of 1e-14 for d from 2 to 512 and |t| <= 400 (48 points: 1e-10).
  using Quadrature = boost::math::quadrature::gauss<double, 64>;
  const auto density = [=](double u) { return std::pow(std::sin(u), d - 1); };
  const auto weighted = [=](double u) {
    const double weight = density(u);  // may underflow where the Kummer function overflows
    return weight > 0 ? weight * kummer(d, d / 2, x * (1 + cosine * std::sin(u))) : 0;
  };
  const double half_pi = std::acos(0.0);
  return tilt * Quadrature::integrate(weighted, 0, half_pi) / Quadrature::integrate(density, 0, half_pi);
}

}  // namespace attnbench
