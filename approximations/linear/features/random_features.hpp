// Shared by all random feature maps: the number of projection vectors, how they are drawn, and which maps share them.
#pragma once

#include "harness/core/feature_map.hpp"

namespace attnbench {

inline Parameter share_parameter() {
  return Parameter::choice("share", "head",
                           "who shares a draw: nobody (head), the heads of a layer, every step as well",
                           {"head", "layer", "step"});
}

// For maps with one feature per projection vector.
inline std::vector<Parameter> random_feature_parameters(std::vector<Parameter> own = {}) {
  std::vector<Parameter> all{
      Parameter::integer("m", 256, "number of projection vectors omega", 1, 1 << 20).as_budget(),
      Parameter::entry("projection", "orthogonal", "ensemble of the projection vectors", "projections"),
      share_parameter()};
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

// For maps with two features per vector. The meaning of m (vectors or features) decides which maps equal m compares.
inline std::vector<Parameter> paired_feature_parameters() {
  return random_feature_parameters(
      {Parameter::choice("count", "omegas", "what m counts: projection vectors (2m features) or features (m/2 vectors)",
                         {"omegas", "features"})});
}

// The number of projection vectors.
inline Index projection_vectors(const Params& params) {
  const Index m = params.integer("m");
  if (!params.has("count") || params.text("count") == "omegas") return m;
  if (m % 2 != 0)
    throw Misuse(params.spec() + ": m counts features, of which each projection vector makes two; expected an even m");
  return m / 2;
}

// Rounded to T, so that the state returns exactly the numbers that an instance of type T uses.
template <class T>
Matrix<double> rounded(const Matrix<double>& X) {
  return X.cast<T>().template cast<double>();
}

// Work of mapping one token: the projection, plus exps_each exponentials (sines, cosines) per projection vector.
inline Work projection_work(const Params& params, Index d, double exps_each) {
  const double m = static_cast<double>(projection_vectors(params));
  return {.flops = 2 * m * static_cast<double>(d), .exps = exps_each * m};
}

}  // namespace attnbench
