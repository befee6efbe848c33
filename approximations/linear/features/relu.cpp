// The positive part of each channel. Kasai et al., arXiv:2103.13076, without the learnt projection.
//   phi(x) = max(x, 0) + epsilon                                                                     methods.md C
// d features. At epsilon = 0 all features of a token without a positive channel are 0, and two tokens that are positive
// in different channels have weight 0: a row's normaliser may be 0.
#include "approximations/linear/features/channelwise.hpp"

namespace attnbench::relu_map {
namespace {

template <class T>
struct PositivePart {
  explicit PositivePart(const Params& params) : epsilon(static_cast<T>(params.real("epsilon"))) {}
  void apply(const auto& x, auto&& y) const { y = x.max(T(0)) + epsilon; }
  void pull(const auto& x, const auto&, const auto& dy, auto&& dx) const { dx = (x > 0).select(dy, T(0)); }
  static constexpr double exps = 0;
  T epsilon;
};

const bool registered = add(channelwise_map<PositivePart>({
    .text = {.name = "relu",
             .printed = "ReLU",
             .summary = "the positive part of each channel",
             .formula = "phi(x) = max(x, 0) + epsilon",
             .reference = "Kasai et al. 2021, arXiv:2103.13076, without the learnt projection"},
    .parameters = {added_to_features()},
    .may_vanish = true,
    .theory =
        [](const Params& params, Index, const EnsembleLaw&, const Head<double>*) {
          const double epsilon = params.real("epsilon");
          return std::optional(channelwise_kernel("sum_l (max(q_l, 0) + epsilon) (max(k_l, 0) + epsilon)",
                                                  [=](double x) { return std::max(x, 0.0) + epsilon; }));
        },
}));

}  // namespace
}  // namespace attnbench::relu_map
