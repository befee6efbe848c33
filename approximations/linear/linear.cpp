// Linear attention with a deterministic feature map. Katharopoulos et al., arXiv:2006.16236, eq. 5.
//   A = D^-1 phi(Q) phi(K)^T.  rank(A) <= features.
// `inputs` says what phi acts on: q, k scaled by d^-1/4 as everywhere here, or unscaled as in the paper (methods.md 0).
#include <cmath>

#include "approximations/linear/linear_attention.hpp"
#include "approximations/linear/linear_cost.hpp"

namespace attnbench {
namespace {

template <class T>
class Linear final : public LinearAttention<T> {
 public:
  explicit Linear(const Draw& draw)
      : LinearAttention<T>(make_feature_map<T>(draw), draw.params.text("inputs") == "unscaled"
                                                          ? std::pow(static_cast<T>(draw.shape.d), T(0.25))
                                                          : T(1)) {}
};

Claims claims(const Params& params, const Shape& shape) {
  const auto& map = find<FeatureMapEntry>(params.text("features"));
  Claims claims = linear_claims(map, params, shape);
  if (map.theory && params.text("inputs") == "scaled") claims.kernel = map.theory(params, shape.d, nullptr);
  return claims;
}

const bool registered = add(method<Linear>({
    .text = {.name = "linear",
             .summary = "linear attention with a deterministic feature map",
             .formula = "A = D^-1 phi(Q) phi(K)^T",
             .reference = "Katharopoulos et al. 2020, arXiv:2006.16236, eq. 5",
             .cost = "O(n F dv) time, O(F dv) memory beyond input and output",
             .family = "linear"},
    .parameters = {Parameter::entry("features", "elu", "deterministic feature map", "features", "deterministic"),
                   Parameter::choice("inputs", "scaled", "what the map acts on: q and k times d^-1/4, or as they are",
                                     {"scaled", "unscaled"})},
    .claims = claims,
    .cost =
        [](const Params& params, const Shape& shape) {
          return linear_cost(find<FeatureMapEntry>(params.text("features")), params, shape);
        },
}));

}  // namespace
}  // namespace attnbench
