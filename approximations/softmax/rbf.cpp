// Attention with the Gaussian kernel. Tsai et al., arXiv:1908.11775, section 3.2 (RBF).
//   A_ij = exp(-|q_i - k_j|^2 / 2) / sum_l exp(-|q_i - k_l|^2 / 2) = softmax(q.k - |k|^2/2)             methods.md A7,
//   C
// The factor of a query cancels; keys far from the origin lose weight. Equals softmax if all keys have the same norm.
#include <cmath>

#include "approximations/softmax/tiled_softmax.hpp"
#include "harness/linalg/per_row.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench::rbf_method {
namespace {

template <class T>
class Rbf final : public Approximation<T>, public Kernel<T>, public Rows<T>, public Differentiable<T> {
 public:
  explicit Rbf(const Draw&) {}

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    tiled_softmax<T>(head, mask, bias(head.K), context, out);
  }

  const Kernel<T>* kernel() const override { return this; }
  const Rows<T>* rows() const override { return this; }
  const Differentiable<T>* differentiable() const override { return this; }

  void kernel(const Head<T>& head, Context& context, Out<T> block, std::span<T> log_rows,
              std::span<T> log_columns) const override {
    multiply_transposed<T>(context, head.Q, head.K, block);
    row_maxima<T>(block, log_rows);
    exponentiate_rows<T>(context, block, log_rows);
    const auto columns = bias(head.K);
    std::copy(columns.begin(), columns.end(), log_columns.begin());
    for (Index i = 0; i < head.Q.rows(); ++i) log_rows[static_cast<size_t>(i)] -= head.Q.row(i).squaredNorm() / 2;
  }

  void attention_rows(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> A) const override {
    const auto columns = bias(head.K);
    multiply_transposed<T>(context, row_block(head.Q, first, A.rows()), head.K, A);
    for (Index i = 0; i < A.rows(); ++i) {
      for (Index j = 0; j < A.cols(); ++j) A(i, j) += columns[static_cast<size_t>(j)];
      softmax_within<T>(context, A, i, 0, mask.visible(first + i, A.cols()));
    }
  }

  void forward(const Head<T>& head, Mask mask, Context& context, Out<T> out, std::vector<T>& saved) const override {
    saved.resize(static_cast<size_t>(head.Q.rows()));
    tiled_softmax<T>(head, mask, bias(head.K), context, out, saved);
  }

  void backward(const Head<T>& head, Mask mask, const In<T>& out, const std::vector<T>& saved, const In<T>& G,
                Context& context, Gradients<T> gradients) const override {
    PerRow<T> of_bias(head.K.rows());
    tiled_softmax_backward<T>(head, mask, bias(head.K), out, saved, G, context, gradients, of_bias);
    for (Index j = 0; j < head.K.rows(); ++j) gradients.K.row(j) -= of_bias[j] * head.K.row(j);
  }

 private:
  static std::vector<T> bias(const In<T>& K) {
    PerRow<T> half(K.rows());
    half_squared_norms<T>(K, half);
    for (T& h : half) h = -h;
    return half;
  }
};

const bool registered = add(method<Rbf>({
    .text = {.name = "rbf",
             .printed = "Gaussian kernel (exact)",
             .summary = "attention with the Gaussian kernel, exact: softmax(q.k - |k|^2/2)",
             .formula = "A_ij = exp(-|q_i - k_j|^2 / 2) / sum_l exp(-|q_i - k_l|^2 / 2)",
             .reference = "Tsai et al. 2019, arXiv:1908.11775, section 3.2",
             .cost = "O(n^2 (d + dv)) time, O(tile + n) memory beyond input and output",
             .family = "exact"},
    .parameters = {},
    .claims =
        [](const Params&, const Shape&) {
          return Claims{
              .row_stochastic = true, .non_negative = true, .permutation_equivariant = true, .causal_exact = true};
        },
    .memory =
        [](const Params&, const Shape& shape) {
          return static_cast<double>(shape.nk) * bytes_of(shape.precision);  // |k|^2 / 2
        },
    .cost =
        [](const Params&, const Shape& shape) {
          const double pairs = static_cast<double>(shape.nq * shape.nk) * (shape.mask.causal ? 0.5 : 1.0);
          return Work{.flops = 2 * pairs * static_cast<double>(shape.d + shape.dv), .exps = pairs};
        },
    .theory =
        [](const Params&, const Shape&, const Head<double>*) {
          return std::optional(KernelTheory{.target = "exp(-|q-k|^2/2)",
                                            .mean = [](const Pair& p) { return std::exp(-p.minus2() / 2); },
                                            .variance = [](const Pair&) { return 0.0; }});
        },
}));

}  // namespace
}  // namespace attnbench::rbf_method
