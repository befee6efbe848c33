// Efficient attention as source 000 writes it: a softmax over the channels of a query, exponentials of a key, and the
// normalisation of linear attention.
//   phi(q) = softmax(q),  phi(k) = e^k,   phi(q).phi(k) = sum_l exp(q_l + k_l) / sum_l exp(q_l)        methods.md C3
// The sum is a factor of the query and cancels: the attention is that of `exp`. The published method (`efficient`)
// normalises each channel over the keys instead, which does not cancel. d features.
#include <cmath>

#include "harness/core/feature_map.hpp"
#include "harness/linalg/exp.hpp"

namespace attnbench::softmax_exp_map {
namespace {

template <class T>
class SoftmaxExpFeatures final : public FeatureMap<T> {
 public:
  explicit SoftmaxExpFeatures(const Draw& draw) : d_(draw.shape.d) {}

  Index features() const override { return d_; }
  Form form() const override { return Form::values; }
  void map(Context& context, const In<T>& X, Side side, Index, Out<T> block, std::span<T> log_scale) const override {
    for (Index i = 0; i < X.rows(); ++i) {
      const auto x = X.row(i).array();
      auto row = block.row(i).array();
      const T largest = x.maxCoeff();
      row = exponential(x - largest);
      if (side == Side::query) row /= row.sum();
      log_scale[static_cast<size_t>(i)] = side == Side::query ? T(0) : largest;
    }
    context.work.exps += static_cast<double>(block.size());
  }
  bool differentiable() const override { return true; }
  void pullback(Context&, const In<T>& X, Side side, Index, const In<T>& block, const In<T>& d_block,
                std::span<const T> d_log_scale, Out<T> dX) const override {
    // Query, softmax p with gradient g: p (g - sum_l p_l g_l). Key, e^(x - max x) with log scale max x: the largest x
    // enters every feature and the scale.
    for (Index i = 0; i < X.rows(); ++i) {
      const auto phi = block.row(i).array(), d_phi = d_block.row(i).array();
      const T mean = (phi * d_phi).sum();
      if (side == Side::query) {
        dX.row(i).array() = phi * (d_phi - mean);
        continue;
      }
      Index largest = 0;
      X.row(i).maxCoeff(&largest);
      dX.row(i).array() = phi * d_phi;
      dX(i, largest) += d_log_scale[static_cast<size_t>(i)] - mean;
    }
  }

 private:
  Index d_;
};

double kernel(const Pair& p) {
  double of_q = 0, both = 0;
  for (size_t l = 0; l < p.q.size(); ++l) {
    of_q += std::exp(p.q[l]);
    both += std::exp(p.q[l] + p.k[l]);
  }
  return both / of_q;
}

const bool registered = add(deterministic_map<SoftmaxExpFeatures>({
    .text = {.name = "softmax-exp",
             .printed = "softmax and exp",
             .summary = "softmax over the channels of a query, exponentials of a key: the attention of exp",
             .formula = "phi(q) = softmax(q), phi(k) = exp(k)",
             .reference = "Su 2021, kexue.fm/archives/8338",
             .cost = "O(n d) time, d features"},
    .parameters = {},
    .features = [](const Params&, Index d) { return d; },
    .token_work = [](const Params&, Index d) { return Work{.exps = static_cast<double>(d)}; },
    .non_negative = true,
    .no_extremes = "a query with large entries keeps one feature, which is 0 beside a key's largest",
    .theory =
        [](const Params&, Index, const EnsembleLaw&, const Head<double>*) {
          return std::optional(KernelTheory{.target = "sum_l exp(q_l + k_l) / sum_l exp(q_l)",
                                            .mean = kernel,
                                            .variance = [](const Pair&) { return 0.0; }});
        },
}));

}  // namespace
}  // namespace attnbench::softmax_exp_map
