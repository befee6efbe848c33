// Deterministic maps that apply one function to each channel: phi(x)_l = f(x_l) >= 0, d features.     methods.md C
#pragma once

#include "approximations/linear/features/channelwise_kernel.hpp"
#include "harness/core/feature_map.hpp"

namespace attnbench {

// Function<T> is constructed from the spec's parameters and works on rows of d channels:
//   apply(x, y): y = f(x).  pull(x, y, dy, dx): dx = f'(x) dy, where y = f(x).  exps: exponentials a channel of apply.
template <class T, template <class> class Function>
class ChannelwiseFeatures final : public FeatureMap<T> {
 public:
  explicit ChannelwiseFeatures(const Draw& draw) : d_(draw.shape.d), f_(draw.params) {}

  Index features() const override { return d_; }
  Form form() const override { return Form::values; }
  void map(Context& context, const In<T>& X, Side, Index, Out<T> block, std::span<T> log_scale) const override {
    for (Index i = 0; i < X.rows(); ++i) f_.apply(X.row(i).array(), block.row(i).array());
    context.work.exps += Function<T>::exps * static_cast<double>(X.size());
    std::fill(log_scale.begin(), log_scale.end(), T(0));
  }
  bool differentiable() const override { return true; }
  void pullback(Context&, const In<T>& X, Side, Index, const In<T>& block, const In<T>& d_block, std::span<const T>,
                Out<T> dX) const override {
    for (Index i = 0; i < X.rows(); ++i)
      f_.pull(X.row(i).array(), block.row(i).array(), d_block.row(i).array(), dX.row(i).array());
  }

 private:
  Index d_;
  Function<T> f_;
};

// Static for the same reason as `method` (see approximation.hpp).
template <template <class> class Function>
static DeterministicMapEntry channelwise_map(FeatureMapEntry entry) {
  entry.text.cost = "O(n d) time, d features";
  entry.f32 = [](const Draw& draw) { return std::make_unique<ChannelwiseFeatures<float, Function>>(draw); };
  entry.f64 = [](const Draw& draw) { return std::make_unique<ChannelwiseFeatures<double, Function>>(draw); };
  entry.features = [](const Params&, Index d) { return d; };
  entry.token_work = [](const Params&, Index d) {
    return Work{.exps = Function<double>::exps * static_cast<double>(d)};
  };
  entry.non_negative = true;
  return {std::move(entry)};
}

inline Parameter added_to_features() {
  return Parameter::real("epsilon", 0, "added to every feature: above 0 no row is left without weight", 0, 1);
}

}  // namespace attnbench
