// The square of the positive part of each channel: the activation of So et al., arXiv:2109.08668, as a feature map.
//   phi(x) = max(x, 0)^2 + epsilon                                                                   methods.md C
// d features, sharper than relu's; likewise a token may be left without any, and a row without weight.
#include "approximations/linear/features/channelwise_kernel.hpp"
#include "harness/core/feature_map.hpp"

namespace attnbench {
namespace {

template <class T>
class SquaredReluFeatures final : public FeatureMap<T> {
 public:
  explicit SquaredReluFeatures(const Draw& draw)
      : d_(draw.shape.d), epsilon_(static_cast<T>(draw.params.real("epsilon"))) {}

  Index features() const override { return d_; }
  Form form() const override { return Form::values; }
  void map(Context&, const In<T>& X, Side, Index, Out<T> block, std::span<T> log_scale) const override {
    for (Index i = 0; i < X.rows(); ++i) block.row(i).array() = X.row(i).array().max(T(0)).square() + epsilon_;
    std::fill(log_scale.begin(), log_scale.end(), T(0));
  }
  bool differentiable() const override { return true; }
  void pullback(Context&, const In<T>& X, Side, Index, const In<T>&, const In<T>& d_block, std::span<const T>,
                Out<T> dX) const override {
    for (Index i = 0; i < X.rows(); ++i) dX.row(i).array() = 2 * X.row(i).array().max(T(0)) * d_block.row(i).array();
  }

 private:
  Index d_;
  T epsilon_;
};

const bool registered = add(deterministic_map<SquaredReluFeatures>({
    .text = {.name = "relu2",
             .summary = "the squared positive part of each channel",
             .formula = "phi(x) = max(x, 0)^2 + epsilon",
             .reference = "So et al. 2021, arXiv:2109.08668, section 4 (the activation)",
             .cost = "O(n d) time, d features"},
    .parameters = {Parameter::real("epsilon", 0, "added to every feature: above 0 no row is left without weight", 0,
                                   1)},
    .features = [](const Params&, Index d) { return d; },
    .non_negative = true,
    .may_vanish = true,
    .theory =
        [](const Params& params, Index, const EnsembleLaw&, const Head<double>*) {
          const double epsilon = params.real("epsilon");
          return std::optional(
              channelwise_kernel("sum_l (max(q_l, 0)^2 + epsilon) (max(k_l, 0)^2 + epsilon)",
                                 [=](double x) { return std::max(x, 0.0) * std::max(x, 0.0) + epsilon; }));
        },
}));

}  // namespace
}  // namespace attnbench
