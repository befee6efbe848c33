// The positive part of each channel. Kasai et al., arXiv:2103.13076, without the learnt projection.
//   phi(x) = max(x, 0) + epsilon                                                                     methods.md C
// d features. At epsilon = 0 a token without a positive channel has no feature, and two tokens that are positive in
// different channels have weight 0: rows may be left without weight.
#include "approximations/linear/features/channelwise_kernel.hpp"
#include "harness/core/feature_map.hpp"

namespace attnbench {
namespace {

template <class T>
class ReluFeatures final : public FeatureMap<T> {
 public:
  explicit ReluFeatures(const Draw& draw) : d_(draw.shape.d), epsilon_(static_cast<T>(draw.params.real("epsilon"))) {}

  Index features() const override { return d_; }
  Form form() const override { return Form::values; }
  void map(Context&, const In<T>& X, Side, Index, Out<T> block, std::span<T> log_scale) const override {
    for (Index i = 0; i < X.rows(); ++i) block.row(i).array() = X.row(i).array().max(T(0)) + epsilon_;
    std::fill(log_scale.begin(), log_scale.end(), T(0));
  }
  bool differentiable() const override { return true; }
  void pullback(Context&, const In<T>& X, Side, Index, const In<T>&, const In<T>& d_block, std::span<const T>,
                Out<T> dX) const override {
    dX.array() = (X.array() > 0).select(d_block.array(), T(0));
  }

 private:
  Index d_;
  T epsilon_;
};

const bool registered = add(deterministic_map<ReluFeatures>({
    .text = {.name = "relu",
             .summary = "the positive part of each channel",
             .formula = "phi(x) = max(x, 0) + epsilon",
             .reference = "Kasai et al. 2021, arXiv:2103.13076, without the learnt projection",
             .cost = "O(n d) time, d features"},
    .parameters = {Parameter::real("epsilon", 0, "added to every feature: above 0 no row is left without weight", 0,
                                   1)},
    .features = [](const Params&, Index d) { return d; },
    .non_negative = true,
    .may_vanish = true,
    .theory =
        [](const Params& params, Index, const EnsembleLaw&, const Head<double>*) {
          const double epsilon = params.real("epsilon");
          return std::optional(channelwise_kernel("sum_l (max(q_l, 0) + epsilon) (max(k_l, 0) + epsilon)",
                                                  [=](double x) { return std::max(x, 0.0) + epsilon; }));
        },
}));

}  // namespace
}  // namespace attnbench
