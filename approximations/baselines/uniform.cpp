// The null that every plot carries: the mean of the values that a row sees. Many approximations lose to it on random
// data (methods.md I, expected magnitudes).
//   A_ij = 1 / (number of keys that row i sees)
#include "harness/core/approximation.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench {
namespace {

template <class T>
class Uniform final : public Approximation<T> {
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
};

const bool registered = add(method<Uniform>({
    .text = {.name = "uniform",
             .summary = "the mean of V: the null that every plot carries",
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
    .cost = [](const Params&,
               const Shape& shape) { return Work{.flops = static_cast<double>((shape.nk + shape.nq) * shape.dv)}; },
}));

}  // namespace
}  // namespace attnbench
