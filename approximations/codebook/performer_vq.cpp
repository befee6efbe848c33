// Performer as soft vector quantisation with the omegas as codebook: both readings of source 001 (kexue 9862).
//   form=equal-norms         phi(q)_y = exp(omega_y.q),  phi(k)_y = exp(-|k - omega_y|^2 / 2)           methods.md D5
//     is Performer with positive features if all |omega_y| are equal, to any value. If the norms differ,
//     exp(-|omega|^2/2) tilts the measure: N(0, I) becomes N(0, I/2), and m -> infinity gives
//     softmax(q.k/2 - |k|^2/4). Even if norms are "nearly equal" by Johnson and Lindenstrauss, |omega|^2/2 has a
//     standard deviation of sqrt(d/2) nats.
//   form=softmax-over-codes  phi(k)_y = softmax_y(-|k - omega_y|^2 / 2)                                 methods.md D6
//     divides by one number per key, which does not cancel. As m -> infinity, Gaussian omegas give softmax(q.k/2);
//     omegas of norm sqrt(d) approach softmax as d grows.
// rank <= m. O(n m d) time.
#include "approximations/codebook/soft_codes.hpp"
#include "approximations/linear/features/random_features.hpp"
#include "approximations/linear/linear_attention.hpp"
#include "approximations/linear/linear_cost.hpp"

namespace attnbench::performer_vq_method {
namespace {

bool over_codes(const Params& params) { return params.text("form") == "softmax-over-codes"; }

template <class T>
std::unique_ptr<FeatureMap<T>> make_map(const Draw& draw) {
  const Matrix<double> W = draw_projection(shared_draw(draw), draw.params.integer("m"));
  const auto weights = over_codes(draw.params) ? CodeWeights::posterior : CodeWeights::joint;
  return std::make_unique<SoftCodes<T>>(W, nullptr, 1, weights, "projection");
}

template <class T>
class PerformerVq final : public LinearAttention<T> {
 public:
  explicit PerformerVq(const Draw& draw) : LinearAttention<T>(make_map<T>(draw)) {}
};

std::vector<std::string> caveats(const Params& params, const Shape& shape) {
  const auto& projection = find<ProjectionEntry>(params.text("projection"));
  auto all = projection.caveats(params, params.integer("m"), shape.d);
  if (over_codes(params))
    all.push_back("softmax over the omegas is not an estimate of exp(q.k): Gaussian omegas tend to softmax(q.k/2)");
  else if (!projection.law(params, shape.d).norm)
    all.push_back("norms of the omegas that differ tilt the weights: Gaussian ones tend to softmax(q.k/2 - |k|^2/4)");
  return all;
}

const bool registered = add(method<PerformerVq>({
    .text = {.name = "performer-vq",
             .printed = "Performer VQ",
             .summary = "Performer with its random vectors read as a codebook",
             .formula = "A = rownorm(exp(Q W^T) P^T), P_jy = exp(-|k_j - w_y|^2 / 2), or its softmax over y",
             .reference = "Su 2023, kexue.fm/archives/9862",
             .cost = "O(n m (d + dv)) time, O(m dv) memory beyond input and output",
             .family = "codebook"},
    .parameters = {Parameter::choice("form", "equal-norms",
                                     "weights of a key: its densities at the omegas, which is Performer where all have "
                                     "one norm, or their softmax over the omegas",
                                     {"equal-norms", "softmax-over-codes"}),
                   Parameter::integer("m", 256, "number of projection vectors omega", 1, 1 << 20).as_budget(),
                   Parameter::entry("projection", "orthogonal-fixed-norm", "ensemble of the projection vectors",
                                    "projections"),
                   share_parameter()},
    .claims =
        [](const Params& params, const Shape&) {
          return Claims{.row_stochastic = true,
                        .non_negative = true,
                        .permutation_equivariant = true,
                        .causal_exact = true,
                        .rank_at_most = params.integer("m")};
        },
    .memory = [](const Params& params, const Shape& shape) { return linear_memory(params.integer("m"), shape); },
    .cost =
        [](const Params& params, const Shape& shape) {
          const double m = static_cast<double>(params.integer("m"));
          Work work = linear_cost(params.integer("m"), shape);
          work.flops += 2 * static_cast<double>(shape.nq + shape.nk) * m * static_cast<double>(shape.d);
          work.exps += static_cast<double>(shape.nq + (over_codes(params) ? 2 : 1) * shape.nk) * m;
          return work;
        },
    .caveats = caveats,
}));

}  // namespace
}  // namespace attnbench::performer_vq_method
