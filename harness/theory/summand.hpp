// Closed forms of random-feature estimators: an estimate is the mean of m summands X(omega_i), one per projection
// vector. A map gives the moments of a summand under an ensemble's law, and an ensemble gives its law. So every map has
// a theory with every ensemble, including new maps and new ensembles.
#pragma once

#include <optional>

#include "harness/core/projection.hpp"

namespace attnbench {

// E X, E X^2 and E X_1 X_2 for two vectors of the same block, for a pair (q, k). If second or cross is empty, so is
// every variance that needs it. correlation: as in KernelTheory, for independent normal vectors.
struct SummandMoments {
  std::function<double(const Pair&, const EnsembleLaw&)> mean, second = {}, cross = {};
  std::function<void(Context&, const In<double>& q, const In<double>& J, const In<double>& K, Out<double> block)>
      correlation = {};
};

// Var of the mean of m summands = Var X / m + P Cov(X_1, X_2) / m^2, P ordered dependent pairs (methods.md B). nullopt
// if the ensemble's law is not known.
std::optional<KernelTheory> average_of_summands(std::string target, Index m, const EnsembleLaw& law,
                                                const SummandMoments& moments);

}  // namespace attnbench
