// Projection vectors that are the first d coordinates of a uniform vector of norm sqrt(D) in D >= d dimensions.
#pragma once

#include <cmath>

#include "harness/theory/special_functions.hpp"

namespace attnbench {

// E exp(alpha |omega|^2 + omega.z), |z|^2 = t, for such a vector. |omega|^2 is D times a Beta(d/2, (D-d)/2) variate:
//   e^(alpha D) sum_j (D t/4)^j / (j! (D/2)_j) 1F1((D-d)/2; D/2+j; -alpha D),   0F1(; D/2; D t/4) at alpha = 0.
inline double sphere_moment(double d, double D, double t, double alpha) {
  if (alpha == 0 || d == D) return std::exp(alpha * D) * hypergeometric_0f1(D / 2, D * t / 4);
  double weight = 1, sum = 0, last = 1;
  for (double j = 0; std::abs(last) > 1e-17 * std::abs(sum) && std::isfinite(sum); ++j) {
    sum += last = weight * kummer((D - d) / 2, D / 2 + j, -alpha * D);
    weight *= D * t / 4 / ((j + 1) * (D / 2 + j));
  }
  return std::exp(alpha * D) * sum;
}

}  // namespace attnbench
