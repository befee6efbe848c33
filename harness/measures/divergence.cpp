#include "harness/measures/divergence.hpp"

#include <cassert>
#include <cmath>
#include <limits>

namespace attnbench {

double l1_distance(std::span<const double> p, std::span<const double> q) {
  assert(p.size() == q.size());
  double sum = 0;
  for (size_t j = 0; j < p.size(); ++j) sum += std::abs(p[j] - q[j]);
  return sum;
}

std::optional<double> kl_divergence(std::span<const double> p, std::span<const double> q) {
  assert(p.size() == q.size());
  double sum = 0;
  for (size_t j = 0; j < p.size(); ++j) {
    if (p[j] < 0 || q[j] < 0) return std::nullopt;
    // Take a difference of logarithms: the quotient overflows for subnormal q, although the divergence is finite.
    if (p[j] > 0) sum += q[j] > 0 ? p[j] * (std::log(p[j]) - std::log(q[j])) : std::numeric_limits<double>::infinity();
  }
  return sum;
}

}  // namespace attnbench
