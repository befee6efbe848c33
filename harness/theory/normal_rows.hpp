// Moments of projection vectors that are each normal, tilted by exp(alpha |omega|^2). Ensemble laws are built from
// them. methods.md A5, B.
#pragma once

#include "harness/linalg/matrix.hpp"

namespace attnbench {

// E exp(alpha |omega|^2 + omega.z) for omega ~ N(0, I_d), |z|^2 = t, alpha < 1/2:
// (1 - 2 alpha)^(-d/2) exp(t / (2 (1 - 2 alpha))).
double normal_moment(Index d, double t, double alpha);

// E exp(alpha (R_1^2 + R_2^2) + (R_1 s_1 + R_2 s_2).z) for unit vectors s_1, s_2 with that cosine between them, turned
// by a Haar rotation, and independent chi_d radii. With the radii in polar form, R^2 = rho^2 (1 + cosine sin 2 theta):
//   E over theta, of density ~ sin(2 theta)^(d-1), of 1F1(d; d/2; t (1 + cosine sin 2 theta) / 2)      at alpha = 0.
double chi_pair_moment(Index d, double t, double cosine, double alpha);

}  // namespace attnbench
