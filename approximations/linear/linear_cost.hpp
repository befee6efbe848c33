// Claims and costs that linear attention has with every feature map.
#pragma once

#include "approximations/linear/linear_state.hpp"

namespace attnbench {

inline Claims linear_claims(const FeatureMapEntry& map, const Params& params, const Shape& shape) {
  Claims claims{.row_stochastic = !map.may_vanish,
                .non_negative = map.non_negative,
                .permutation_equivariant = true,
                .causal_exact = true,
                .rank_at_most = map.features(params, shape.d),
                .no_extremes = map.no_extremes,
                .implied = {{"rank", "the number of its features"}}};
  if (claims.row_stochastic) claims.implied["row-sums"] = "the division by row sums of its features' products";
  if (claims.non_negative) claims.implied["non-negative"] = "features that are not negative";
  return claims;
}

// The cost of mapping `tokens` tokens to features.
inline Work mapping_cost(const FeatureMapEntry& map, const Params& params, Index d, Index tokens) {
  const Work one = map.token_work(params, d);
  return {.flops = one.flops * static_cast<double>(tokens), .exps = one.exps * static_cast<double>(tokens)};
}

// The cost without computing features. methods.md H: 4 n F dv + 3 n F, plus 2 n c (F + dv) for causal chunks of c rows.
inline Work linear_cost(Index features, const Shape& shape) {
  const double F = static_cast<double>(features), dv = static_cast<double>(shape.dv);
  Work work{.flops = 2 * F * (dv + 1) * static_cast<double>(shape.nq + shape.nk)};
  if (shape.mask.causal) work.flops += 2 * static_cast<double>(shape.nq * causal_chunk) * (F + dv);
  return work;
}

inline Work linear_cost(const FeatureMapEntry& map, const Params& params, const Shape& shape) {
  Work work = mapping_cost(map, params, shape.d, shape.nq + shape.nk);
  work += linear_cost(map.features(params, shape.d), shape);
  return work;
}

// Blocks of query and key features, and at most 8 partial sums (S, z), of which one third exist at the same time.
inline double linear_memory(Index features, const Shape& shape) {
  return static_cast<double>(features * (Index{2} * 256 + 3 * shape.dv)) * bytes_of(shape.precision);
}

}  // namespace attnbench
