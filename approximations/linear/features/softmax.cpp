// Softmax over the channels of x and of -x. Zhang et al. (Hedgehog), arXiv:2402.04347, without the learnt projection.
//   phi(x) = [softmax(x); softmax(-x)]                                                               methods.md C
// 2d features, positive. Each half sums to one, so that the rank is at most 2d - 1.
#include "approximations/linear/features/softmax_halves.hpp"
#include "harness/core/feature_map.hpp"

namespace attnbench::softmax_map {
namespace {

template <class T>
class SoftmaxFeatures final : public FeatureMap<T> {
 public:
  explicit SoftmaxFeatures(const Draw& draw) : d_(draw.shape.d) {}

  Index features() const override { return 2 * d_; }
  Form form() const override { return Form::values; }
  void map(Context& context, const In<T>& X, Side, Index, Out<T> block, std::span<T> log_scale) const override {
    softmax_halves<T>(X, block);
    context.work.exps += static_cast<double>(block.size());
    std::fill(log_scale.begin(), log_scale.end(), T(0));
  }
  bool differentiable() const override { return true; }
  void pullback(Context&, const In<T>&, Side, Index, const In<T>& block, const In<T>& d_block, std::span<const T>,
                Out<T> dX) const override {
    pull_softmax_halves<T>(block, d_block, dX);
  }

 private:
  Index d_;
};

double kernel(const Pair& p) {
  const auto part = [&](double sign) {
    double of_q = 0, of_k = 0, both = 0;
    for (size_t l = 0; l < p.q.size(); ++l) {
      of_q += std::exp(sign * p.q[l]);
      of_k += std::exp(sign * p.k[l]);
      both += std::exp(sign * (p.q[l] + p.k[l]));
    }
    return both / (of_q * of_k);
  };
  return part(1) + part(-1);
}

const bool registered = add(deterministic_map<SoftmaxFeatures>({
    .text = {.name = "softmax",
             .summary = "softmax over the channels of x and of -x (Hedgehog without its learnt projection)",
             .formula = "phi(x) = [softmax(x); softmax(-x)]",
             .reference = "Zhang et al. 2024, arXiv:2402.04347",
             .cost = "O(n d) time, 2d features"},
    .parameters = {},
    .features = [](const Params&, Index d) { return 2 * d; },
    .token_work = [](const Params&, Index d) { return Work{.exps = 2 * static_cast<double>(d)}; },
    .non_negative = true,
    .no_extremes = "a token with large entries keeps one feature, and tokens that keep different ones share no weight",
    .theory =
        [](const Params&, Index, const EnsembleLaw&, const Head<double>*) {
          return std::optional(KernelTheory{.target = "softmax(q).softmax(k) + softmax(-q).softmax(-k)",
                                            .mean = kernel,
                                            .variance = [](const Pair&) { return 0.0; }});
        },
}));

}  // namespace
}  // namespace attnbench::softmax_map
