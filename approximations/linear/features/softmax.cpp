// Softmax over the channels of x and of -x. Zhang et al. (Hedgehog), arXiv:2402.04347, without the learnt projection.
//   phi(x) = [softmax(x); softmax(-x)]                                                               methods.md C
// 2d features, positive. Each half sums to one, so that the rank is at most 2d - 1.
#include "harness/core/feature_map.hpp"

namespace attnbench {
namespace {

template <class T>
class SoftmaxFeatures final : public FeatureMap<T> {
 public:
  explicit SoftmaxFeatures(const Draw& draw) : d_(draw.shape.d) {}

  Index features() const override { return 2 * d_; }
  Form form() const override { return Form::values; }
  void map(Context& context, const In<T>& X, Side, Index, Out<T> block, std::span<T> log_scale) const override {
    for (Index i = 0; i < X.rows(); ++i) {
      const auto x = X.row(i).array();
      auto up = block.row(i).head(d_).array(), down = block.row(i).tail(d_).array();
      up = (x - x.maxCoeff()).exp();
      up /= up.sum();
      down = (x.minCoeff() - x).exp();
      down /= down.sum();
    }
    context.work.exps += static_cast<double>(block.size());
    std::fill(log_scale.begin(), log_scale.end(), T(0));
  }
  bool differentiable() const override { return true; }
  void pullback(Context&, const In<T>& X, Side, Index, const In<T>& block, const In<T>& d_block, std::span<const T>,
                Out<T> dX) const override {
    // d softmax(x) = p (g - sum_l p_l g_l) for the gradient g with respect to p.
    for (Index i = 0; i < X.rows(); ++i) {
      const auto up = block.row(i).head(d_).array(), down = block.row(i).tail(d_).array();
      const auto d_up = d_block.row(i).head(d_).array(), d_down = d_block.row(i).tail(d_).array();
      const T mean_up = (up * d_up).sum(), mean_down = (down * d_down).sum();
      dX.row(i).array() = up * (d_up - mean_up) - down * (d_down - mean_down);
    }
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
    .theory =
        [](const Params&, Index, const EnsembleLaw&, const Head<double>*) {
          return std::optional(KernelTheory{.target = "softmax(q).softmax(k) + softmax(-q).softmax(-k)",
                                            .mean = kernel,
                                            .variance = [](const Pair&) { return 0.0; }});
        },
}));

}  // namespace
}  // namespace attnbench
