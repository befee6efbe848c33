// What every linear attention promises and costs, whatever its feature map.
#pragma once

#include "harness/core/feature_map.hpp"

namespace attnbench {

inline Claims linear_claims(const FeatureMapEntry& map, const Params& params, const Shape& shape) {
  return {.row_stochastic = true,
          .non_negative = map.non_negative,
          .permutation_equivariant = true,
          .causal_exact = true,
          .rank_at_most = map.features(params, shape.d)};
}

// methods.md H: 4 n F dv + 3 n F without the features themselves.
inline Work linear_cost(Index features, const Shape& shape) {
  const double F = static_cast<double>(features), dv = static_cast<double>(shape.dv);
  return {.flops = 2 * F * (dv + 1) * static_cast<double>(shape.nq + shape.nk)};
}

}  // namespace attnbench
