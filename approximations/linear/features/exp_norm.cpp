// Exponentials, channel by channel, with the norm factor of keys. Su Jianlin, kexue.fm 8338: a Performer whose
// projection is the identity.
//   phi(q) = e^q,  phi(k) = e^(k - |k|^2/2)       phi(q).phi(k) = exp(-|k|^2/2) sum_l exp(q_l + k_l)
// methods.md A11 (i) with W = I. Queries need no norm factor, because it would cancel; a key's does not. d features.
#include <cmath>

#include "approximations/linear/features/channelwise_kernel.hpp"
#include "harness/core/feature_map.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench::exp_norm_map {
namespace {

template <class T>
class ExpNormFeatures final : public FeatureMap<T> {
 public:
  explicit ExpNormFeatures(const Draw& draw) : d_(draw.shape.d) {}

  Index features() const override { return d_; }
  Form form() const override { return Form::exponents; }
  void map(Context&, const In<T>& X, Side side, Index, Out<T> block, std::span<T> log_scale) const override {
    block = X;
    std::fill(log_scale.begin(), log_scale.end(), T(0));
    if (side == Side::query) return;
    half_squared_norms<T>(X, log_scale);
    for (T& scale : log_scale) scale = -scale;
  }
  bool differentiable() const override { return true; }
  void pullback(Context&, const In<T>& X, Side side, Index, const In<T>&, const In<T>& d_block,
                std::span<const T> d_log_scale, Out<T> dX) const override {
    dX = d_block;
    if (side == Side::query) return;
    for (Index i = 0; i < X.rows(); ++i) dX.row(i) -= d_log_scale[static_cast<size_t>(i)] * X.row(i);
  }

 private:
  Index d_;
};

std::optional<KernelTheory> theory(const Params&, Index, const EnsembleLaw&, const Head<double>*) {
  KernelTheory known = channelwise_kernel("exp(-|k|^2/2) sum_l exp(q_l + k_l)", [](double x) { return std::exp(x); });
  known.mean = [without_norm = known.mean](const Pair& p) { return std::exp(-p.k2 / 2) * without_norm(p); };
  return known;
}

const bool registered = add(deterministic_map<ExpNormFeatures>({
    .text = {.name = "exp-norm",
             .summary = "exponentials of the channels with the keys' norm factor: a Performer without projection",
             .formula = "phi(q) = exp(q), phi(k) = exp(k - |k|^2/2)",
             .reference = "Su Jianlin, kexue.fm 8338",
             .cost = "O(n d) time, d features"},
    .parameters = {},
    .features = [](const Params&, Index d) { return d; },
    .token_work = [](const Params&, Index d) { return Work{.exps = static_cast<double>(d)}; },
    .non_negative = true,
    .theory = theory,
}));

}  // namespace
}  // namespace attnbench::exp_norm_map
