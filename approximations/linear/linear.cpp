// Linear attention with a deterministic feature map. Katharopoulos et al., arXiv:2006.16236, eq. 5.
//   A = D^-1 phi(Q) phi(K)^T.  rank(A) <= features.
// `inputs` selects the argument of phi: q, k scaled by d^-1/4 as everywhere here, or unscaled as in the paper
// (methods.md 0).
#include <cmath>

#include "approximations/linear/linear_attention.hpp"
#include "approximations/linear/linear_cost.hpp"

namespace attnbench::linear_method {
namespace {

// Applies a map to the unscaled q and k, which are d^1/4 times the scaled ones.
template <class T>
class Unscaled final : public FeatureMap<T> {
 public:
  Unscaled(std::unique_ptr<FeatureMap<T>> map, Index d)
      : map_(std::move(map)), factor_(std::pow(static_cast<T>(d), T(0.25))) {}
  Index features() const override { return map_->features(); }
  Form form() const override { return map_->form(); }
  void map(Context& context, const In<T>& X, Side side, Index first, Out<T> block,
           std::span<T> log_scale) const override {
    map_->map(context, Matrix<T>(factor_ * X), side, first, block, log_scale);
  }
  bool differentiable() const override { return map_->differentiable(); }
  void pullback(Context& context, const In<T>& X, Side side, Index first, const In<T>& block, const In<T>& d_block,
                std::span<const T> d_log_scale, Out<T> dX) const override {
    map_->pullback(context, Matrix<T>(factor_ * X), side, first, block, d_block, d_log_scale, dX);
    dX *= factor_;
  }
  Tensors state() const override { return map_->state(); }

 private:
  std::unique_ptr<FeatureMap<T>> map_;
  T factor_;
};

template <class T>
std::unique_ptr<FeatureMap<T>> make_map(const Draw& draw) {
  auto map = make_feature_map<T>(draw);
  if (draw.params.text("inputs") == "scaled") return map;
  return std::make_unique<Unscaled<T>>(std::move(map), draw.shape.d);
}

template <class T>
class Linear final : public LinearAttention<T> {
 public:
  explicit Linear(const Draw& draw) : LinearAttention<T>(make_map<T>(draw), causal_backward(draw.params)) {}
};

Claims claims(const Params& params, const Shape& shape) {
  return linear_claims(feature_map_entry(params), params, shape);
}

std::optional<KernelTheory> theory(const Params& params, const Shape& shape, const Head<double>* calibration) {
  const auto& map = feature_map_entry(params);
  if (!map.theory || params.text("inputs") != "scaled") return std::nullopt;
  return map.theory(params, shape.d, {}, calibration);
}

std::vector<std::string> caveats(const Params& params, const Shape&) {
  const bool lifted = params.has("epsilon") && params.real("epsilon") > 0;
  if (!feature_map_entry(params).may_vanish || lifted) return {};
  return {"all features of a token may be 0: a row may be left without weight, and is then 0"};
}

void check(const Params& params) {
  if (feature_map_entry(params).fitted(params) && params.text("inputs") == "unscaled")
    throw Misuse("features=" + params.text("features") + " is fitted to scaled q and k; leave out inputs=unscaled");
}

const bool registered = add(method<Linear>({
    .text = {.name = "linear",
             .printed = "Linear",
             .summary = "linear attention with a deterministic feature map",
             .formula = "A = D^-1 phi(Q) phi(K)^T",
             .reference = "Katharopoulos et al. 2020, arXiv:2006.16236, eq. 5",
             .cost = "O(n F dv) time, O(F dv) memory beyond input and output",
             .family = "linear",
             .aliases = {"linear-attention", "linear-transformer"}},
    .parameters = {Parameter::entry("features", "elu", "feature map", "deterministic-features"),
                   Parameter::choice("inputs", "scaled", "what the map acts on: q and k times d^-1/4, or as they are",
                                     {"scaled", "unscaled"}),
                   causal_backward_parameter()},
    .claims = claims,
    .memory =
        [](const Params& params, const Shape& shape) {
          return linear_memory(feature_map_entry(params).features(params, shape.d), shape);
        },
    .cost = [](const Params& params,
               const Shape& shape) { return linear_cost(feature_map_entry(params), params, shape); },
    .fitted = [](const Params& params) { return feature_map_entry(params).fitted(params); },
    .theory = theory,
    .check = check,
    .caveats = caveats,
}));

}  // namespace
}  // namespace attnbench::linear_method
