// Closed forms of optimal positive random features (OPRF) and of Performer's theorem.
#pragma once

#include "harness/core/theory.hpp"

namespace attnbench {

// The A < 1/8 that minimises E X^2 for |q + k|^2 = phi in d dimensions; 0 at phi = 0. Likhosherstov et al. 2022,
// arXiv:2205.15317, Theorem 3.2; methods.md A5.
double oprf_optimum(double phi, Index d);

// An upper bound on the MSE of m <= d orthogonal positive features. Choromanski et al. 2020, arXiv:2009.14794,
// Theorem 2.
double performer_bound(const Pair& pair, Index m);

}  // namespace attnbench
