// Closed forms of random-feature estimators: an estimate is the mean of m summands X(omega_i), one a projection vector.
// A map says what a summand's moments are given the ensemble's law, an ensemble what its law is: every map gets its
// theory with every ensemble, and a new one of either brings the others' along.
#pragma once

#include <optional>

#include "harness/core/projection.hpp"

namespace attnbench {

// E X, E X^2 and E X_1 X_2 for two vectors of the same block, for a pair (q, k). Where second or cross is empty, so is
// the variance that needs it. correlation: as in KernelTheory, for independent normal vectors.
struct SummandMoments {
  std::function<double(const Pair&, const EnsembleLaw&)> mean, second = {}, cross = {};
  std::function<void(Context&, const In<double>& q, const In<double>& J, const In<double>& K, Out<double> block)>
      correlation = {};
};

// Var of the mean of m summands = Var X / m + P Cov(X_1, X_2) / m^2, P ordered dependent pairs (methods.md B). Nothing
// when the ensemble's law is not known.
std::optional<KernelTheory> average_of_summands(std::string target, Index m, const EnsembleLaw& law,
                                                SummandMoments moments);

}  // namespace attnbench
