#include "harness/theory/oprf.hpp"

namespace attnbench {

double oprf_optimum(double phi, Index dimensions) {
  const double d = static_cast<double>(dimensions), b = 2 * phi + d;
  // rho = (sqrt(b^2 + 8 d phi) - b) / 4 phi, rewritten to avoid the cancellation at large phi and the 0/0 at 0.
  const double rho = 2 * d / (std::sqrt(b * b + 8 * d * phi) + b);
  return (1 - 1 / rho) / 8;
}

double performer_bound(const Pair& pair, Index m) {
  const double count = static_cast<double>(m), d = static_cast<double>(pair.d);
  const double iid = pair.softmax() * pair.softmax() * std::expm1(pair.plus2()) / count;
  const double gain = pair.softmax() - std::exp(-(pair.q2 + pair.k2) / 2);
  return iid - 2 * (count - 1) / (count * (d + 2)) * gain * gain;
}

}  // namespace attnbench
