// Performer: linear attention with random features of exp(q.k). Choromanski et al., arXiv:2009.14794.
//   A = D^-1 phi(Q) phi(K)^T,  rank(A) <= features.  The kernel estimate is unbiased; a normalised row is not
//   (bias O(1/m), methods.md A4).
// `transform` and `shift` change the inputs: softmax stays the same, the variance does not (moved_inputs.hpp).
#include "approximations/linear/linear_attention.hpp"
#include "approximations/linear/linear_cost.hpp"
#include "approximations/linear/moved_inputs.hpp"

namespace attnbench::performer_method {
namespace {

template <class T>
class Performer final : public LinearAttention<T> {
 public:
  explicit Performer(const Draw& draw)
      : LinearAttention<T>(make_map_of_moved_inputs<T>(draw), causal_backward(draw.params)) {}
};

Claims claims(const Params& params, const Shape& shape) {
  return linear_claims(feature_map_entry(params), params, shape);
}

Work cost(const Params& params, const Shape& shape) {
  Work work = linear_cost(feature_map_entry(params), params, shape);
  return work += work_of_moved_inputs(params, shape);
}

std::vector<Parameter> parameters() {
  std::vector<Parameter> all{Parameter::entry("features", "positive", "random feature map", "features")};
  for (const Parameter& moved : moved_inputs_parameters()) all.push_back(moved);
  all.push_back(causal_backward_parameter());
  return all;
}

std::vector<std::string> caveats(const Params& params, const Shape& shape) {
  if (!params.has("projection")) return {};
  return find<ProjectionEntry>(params.text("projection")).caveats(params, params.integer("m"), shape.d);
}

const bool registered = add(method<Performer>({
    .text = {.name = "performer",
             .summary = "linear attention with random features of the softmax kernel",
             .formula = "A = D^-1 phi(Q) phi(K)^T, phi random with E phi(q).phi(k) = exp(q.k)",
             .reference = "Choromanski et al. 2020, arXiv:2009.14794",
             .cost = "O(n F (d + dv)) time, O(F dv) memory beyond input and output",
             .family = "linear",
             .aliases = {"favor"}},
    .parameters = parameters(),
    .claims = claims,
    .memory =
        [](const Params& params, const Shape& shape) {
          return linear_memory(feature_map_entry(params).features(params, shape.d), shape);
        },
    .cost = cost,
    .fitted = [](const Params& params) { return moves_inputs(params) || feature_map_entry(params).fitted(params); },
    .theory = theory_of_moved_inputs,
    .caveats = caveats,
}));

}  // namespace
}  // namespace attnbench::performer_method
