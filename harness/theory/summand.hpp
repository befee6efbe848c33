// Closed forms of random-feature estimators: an estimate is the mean of m summands X(omega_i), one a projection vector.
// A map says what a summand's moments are given the ensemble's law, an ensemble what its law is: every map gets its
// theory with every ensemble, and a new one of either brings the others' along.
#pragma once

#include "harness/core/projection.hpp"

namespace attnbench {

// E X, E X^2 and E X_1 X_2 for two vectors of the same block, for a pair (q, k).
struct SummandMoments {
  std::function<double(const Pair&, const EnsembleLaw&)> mean, second, cross;
};

// Var of the mean of m summands = Var X / m + P Cov(X_1, X_2) / m^2, P ordered dependent pairs (methods.md B). Empty
// when the ensemble's law is not known.
std::optional<KernelTheory> average_of_summands(std::string target, Index m, SharedLaw law, SummandMoments moments);

}  // namespace attnbench
