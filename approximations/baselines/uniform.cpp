// The mean of the values that a row sees: the null baseline in every plot. On random data many approximations have a
// larger error (methods.md I, expected magnitudes).
//   A_ij = 1 / (number of keys that row i sees)
#include "harness/core/approximation.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench::uniform_method {
namespace {

// The sum of the values so far.
template <class T>
class RunningMean final : public Decoder<T> {
 public:
  explicit RunningMean(Index dv) : sum_(Matrix<T>::Zero(1, dv)) {}

  void prefill(const Head<T>& tokens, Context& context) override {
    for (Index j = 0; j < tokens.V.rows(); ++j) sum_ += tokens.V.row(j);
    came_ += tokens.V.rows();
    context.work.flops += static_cast<double>(tokens.V.size());
  }
  void step(const Head<T>& token, Context& context, Out<T> out) override {
    prefill(token, context);
    out = sum_ / static_cast<T>(came_);
    context.work.flops += static_cast<double>(out.size());
  }
  size_t bytes() const override { return static_cast<size_t>(sum_.size()) * sizeof(T) + sizeof(came_); }

 private:
  Matrix<T> sum_;  // 1 x dv
  Index came_ = 0;
};

template <class T>
class Uniform final : public Approximation<T>, public Rows<T> {
 public:
  explicit Uniform(const Draw&) {}

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    Eigen::Matrix<T, 1, Eigen::Dynamic> sum = Eigen::Matrix<T, 1, Eigen::Dynamic>::Zero(head.V.cols());
    Index seen = 0;
    for (Index i = 0; i < head.Q.rows(); ++i) {
      for (const Index visible = mask.visible(i, head.K.rows()); seen < visible; ++seen) sum += head.V.row(seen);
      if (seen > 0)
        out.row(i) = sum / static_cast<T>(seen);
      else
        out.row(i).setZero();
    }
    context.work.flops += static_cast<double>((seen + head.Q.rows()) * head.V.cols());
  }

  const Rows<T>* rows() const override { return this; }
  std::unique_ptr<Decoder<T>> decoder(const Shape& shape) const override {
    return std::make_unique<RunningMean<T>>(shape.dv);
  }

  void attention_rows(const Head<T>&, Mask mask, Index first, Context&, Out<T> A) const override {
    A.setZero();
    for (Index i = 0; i < A.rows(); ++i)
      if (const Index seen = mask.visible(first + i, A.cols()); seen > 0)
        A.row(i).head(seen).setConstant(1 / static_cast<T>(seen));
  }
};

const bool registered = add(method<Uniform>({
    .text = {.name = "uniform",
             .printed = "Mean of V",
             .summary = "the mean of V: the null that figures of errors carry",
             .formula = "A_ij = 1/n",
             .reference = "none: the baseline",
             .cost = "O(n dv) time, O(dv) memory beyond input and output",
             .family = "baseline"},
    .parameters = {},
    .claims =
        [](const Params&, const Shape&) {
          return Claims{.row_stochastic = true,
                        .non_negative = true,
                        .permutation_equivariant = true,
                        .causal_exact = true,
                        .rank_at_most = 1};
        },
    .memory = [](const Params&, const Shape&) { return 0.0; },
    .cost = [](const Params&,
               const Shape& shape) { return Work{.flops = static_cast<double>((shape.nk + shape.nq) * shape.dv)}; },
}));

}  // namespace
}  // namespace attnbench::uniform_method
