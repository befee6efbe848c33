// The square of the positive part of each channel: the activation of So et al., arXiv:2109.08668, as a feature map.
//   phi(x) = max(x, 0)^2 + epsilon                                                                   methods.md C
// d features, sharper than relu's. As with relu, all features of a token, or the normaliser of a row, may be 0.
#include "approximations/linear/features/channelwise.hpp"

namespace attnbench::relu2_map {
namespace {

template <class T>
struct SquaredPositivePart {
  explicit SquaredPositivePart(const Params& params) : epsilon(static_cast<T>(params.real("epsilon"))) {}
  void apply(const auto& x, auto&& y) const { y = x.max(T(0)).square() + epsilon; }
  void pull(const auto& x, const auto&, const auto& dy, auto&& dx) const { dx = 2 * x.max(T(0)) * dy; }
  static constexpr double exps = 0;
  T epsilon;
};

const bool registered = add(channelwise_map<SquaredPositivePart>({
    .text = {.name = "relu2",
             .printed = "ReLU²",
             .summary = "the squared positive part of each channel",
             .formula = "phi(x) = max(x, 0)^2 + epsilon",
             .reference = "So et al. 2021, arXiv:2109.08668, section 4 (the activation)"},
    .parameters = {added_to_features()},
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
}  // namespace attnbench::relu2_map
