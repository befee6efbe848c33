// Performer: linear attention with random features of exp(q.k). Choromanski et al., arXiv:2009.14794.
//   A = D^-1 phi(Q) phi(K)^T,  rank(A) <= features.  The kernel estimate is unbiased; a normalised row is not
//   (bias O(1/m), methods.md A4).
#include "approximations/linear/linear_attention.hpp"
#include "approximations/linear/linear_cost.hpp"

namespace attnbench {
namespace {

template <class T>
class Performer final : public LinearAttention<T> {
 public:
  explicit Performer(const Draw& draw) : LinearAttention<T>(make_feature_map<T>(draw)) {}
};

Claims claims(const Params& params, const Shape& shape) {
  const auto& map = find<FeatureMapEntry>(params.text("features"));
  Claims claims = linear_claims(map, params, shape);
  if (map.theory)
    claims.kernel = map.theory(params, shape.d, find<ProjectionEntry>(params.text("projection")).law(params, shape.d));
  return claims;
}

Work cost(const Params& params, const Shape& shape) {
  return linear_cost(find<FeatureMapEntry>(params.text("features")), params, shape);
}

const bool registered = add(method<Performer>({
    .text = {.name = "performer",
             .summary = "linear attention with random features of the softmax kernel",
             .formula = "A = D^-1 phi(Q) phi(K)^T, phi random with E phi(q).phi(k) = exp(q.k)",
             .reference = "Choromanski et al. 2020, arXiv:2009.14794",
             .cost = "O(n F (d + dv)) time, O(F dv) memory beyond input and output",
             .family = "linear"},
    .parameters = {Parameter::entry("features", "positive", "random feature map", "features", "random")},
    .claims = claims,
    .cost = cost,
}));

}  // namespace
}  // namespace attnbench
