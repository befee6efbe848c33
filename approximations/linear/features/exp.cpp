// Exponentials, channel by channel. Su Jianlin, kexue.fm 8338.
//   phi(x) = e^x,    phi(q).phi(k) = sum_l exp(q_l + k_l)                                            methods.md C
// d features. At d = 1 every row is softmax(k), because phi(q) cancels.
#include <cmath>

#include "approximations/linear/features/channelwise_kernel.hpp"
#include "harness/core/feature_map.hpp"

namespace attnbench::exp_map {
namespace {

template <class T>
class ExpFeatures final : public FeatureMap<T> {
 public:
  explicit ExpFeatures(const Draw& draw) : d_(draw.shape.d) {}

  Index features() const override { return d_; }
  Form form() const override { return Form::exponents; }
  void map(Context&, const In<T>& X, Side, Index, Out<T> block, std::span<T> log_scale) const override {
    block = X;
    std::fill(log_scale.begin(), log_scale.end(), T(0));
  }
  bool differentiable() const override { return true; }
  void pullback(Context&, const In<T>&, Side, Index, const In<T>&, const In<T>& d_block, std::span<const T>,
                Out<T> dX) const override {
    dX = d_block;
  }

 private:
  Index d_;
};

const bool registered = add(deterministic_map<ExpFeatures>({
    .text = {.name = "exp",
             .summary = "exponentials of the channels, without a projection",
             .formula = "phi(x) = exp(x)",
             .reference = "Su Jianlin, kexue.fm 8338",
             .cost = "O(n d) time, d features"},
    .parameters = {},
    .features = [](const Params&, Index d) { return d; },
    .token_work = [](const Params&, Index d) { return Work{.exps = static_cast<double>(d)}; },
    .non_negative = true,
    .theory =
        [](const Params&, Index, const EnsembleLaw&, const Head<double>*) {
          return std::optional(channelwise_kernel("sum_l exp(q_l + k_l)", [](double x) { return std::exp(x); }));
        },
}));

}  // namespace
}  // namespace attnbench::exp_map
