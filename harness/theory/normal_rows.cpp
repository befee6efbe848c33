#include "harness/theory/normal_rows.hpp"

#include <boost/math/quadrature/gauss_kronrod.hpp>
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
  // u = 2 theta in [0, pi], symmetric about pi / 2. Its density is E over a Beta law; the constant is the same integral
  // without the Kummer function.
  using Quadrature = boost::math::quadrature::gauss_kronrod<double, 61>;
  const auto density = [=](double u) { return std::pow(std::sin(u), d - 1); };
  const auto weighted = [=](double u) { return density(u) * kummer(d, d / 2, x * (1 + cosine * std::sin(u))); };
  const double half_pi = std::acos(0.0);
  return tilt * Quadrature::integrate(weighted, 0, half_pi, 8, 1e-12) /
         Quadrature::integrate(density, 0, half_pi, 8, 1e-14);
}

}  // namespace attnbench
