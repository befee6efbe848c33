// Exact softmax attention: the truth and the baseline. Vaswani et al., arXiv:1706.03762, eq. 1.
//   out_i = sum_j exp(q_i.k_j) v_j / sum_j exp(q_i.k_j)
// form=tiled is the engine of tiled_softmax.hpp. form=materialised computes the whole n x n matrix in the usual three
// lines; it exists for comparison.
#include <cmath>

#include "approximations/softmax/key_value_cache.hpp"
#include "approximations/softmax/recomputation.hpp"
#include "approximations/softmax/tiled_softmax.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench::softmax_method {
namespace {

template <class T>
class Softmax final : public Approximation<T>, public Kernel<T>, public Rows<T>, public Differentiable<T> {
 public:
  explicit Softmax(const Draw& draw)
      : materialised_(draw.params.text("form") == "materialised"), cache_(draw.params.flag("cache")) {}

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    if (!materialised_) return tiled_softmax<T>(head, mask, {}, context, out);
    Matrix<T> A(head.Q.rows(), head.K.rows());
    context.for_blocks(head.Q.rows(), block_rows, [&](Context& single, Index begin, Index count) {
      auto block = row_block(A, begin, count);
      attention_rows(head, mask, begin, single, block);
      multiply<T>(single, block, head.V, row_block(out, begin, count));
    });
  }

  const Kernel<T>* kernel() const override { return this; }
  const Rows<T>* rows() const override { return this; }
  std::unique_ptr<Decoder<T>> decoder(const Shape& shape) const override {
    if (cache_) return std::make_unique<KeyValueCache<T>>(shape);
    return std::make_unique<Recomputation<T>>(*this, shape);
  }
  const Differentiable<T>* differentiable() const override { return this; }

  void kernel(const Head<T>& head, Context& context, Out<T> block, std::span<T> log_rows,
              std::span<T> log_columns) const override {
    multiply_transposed<T>(context, head.Q, head.K, block);
    row_maxima<T>(block, log_rows);
    exponentiate_rows<T>(context, block, log_rows);
    std::fill(log_columns.begin(), log_columns.end(), T(0));
  }

  void attention_rows(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> A) const override {
    multiply_transposed<T>(context, row_block(head.Q, first, A.rows()), head.K, A);
    for (Index i = 0; i < A.rows(); ++i) softmax_within<T>(context, A, i, 0, mask.visible(first + i, A.cols()));
  }

  void forward(const Head<T>& head, Mask mask, Context& context, Out<T> out, std::vector<T>& saved) const override {
    if (materialised_) return materialised_forward(head, mask, context, out, saved);
    saved.resize(static_cast<size_t>(head.Q.rows()));
    tiled_softmax<T>(head, mask, {}, context, out, saved);
  }

  void backward(const Head<T>& head, Mask mask, const In<T>& out, const std::vector<T>& saved, const In<T>& G,
                Context& context, Gradients<T> gradients) const override {
    if (materialised_) return materialised_backward(head, saved, G, context, gradients);
    tiled_softmax_backward<T>(head, mask, {}, out, saved, G, context, gradients);
  }

 private:
  static constexpr Index block_rows = 256;

  // As in a framework, the forward pass saves the matrix.
  void materialised_forward(const Head<T>& head, Mask mask, Context& context, Out<T> out, std::vector<T>& saved) const {
    saved.resize(static_cast<size_t>(head.Q.rows() * head.K.rows()));
    const Out<T> A(saved.data(), head.Q.rows(), head.K.rows(), head.K.rows());
    attention_rows(head, mask, 0, context, A);
    multiply<T>(context, A, head.V, out);
  }

  // dA = G V^T;  dS = A o (dA - rowsum(dA o A));  dq = dS k;  dk = dS^T q;  dV = A^T G             (methods.md H)
  void materialised_backward(const Head<T>& head, const std::vector<T>& saved, const In<T>& G, Context& context,
                             Gradients<T> gradients) const {
    const In<T> A(saved.data(), head.Q.rows(), head.K.rows(), head.K.rows());
    Matrix<T> dS(A.rows(), A.cols());
    multiply_transposed<T>(context, G, head.V, dS);
    for (Index i = 0; i < A.rows(); ++i) {
      const T along_row = dS.row(i).dot(A.row(i));
      dS.row(i).array() = A.row(i).array() * (dS.row(i).array() - along_row);
    }
    multiply<T>(context, dS, head.K, gradients.Q);
    gradients.K.setZero();
    gradients.V.setZero();
    transposed_multiply_add<T>(context, dS, head.Q, gradients.K);
    transposed_multiply_add<T>(context, A, G, gradients.V);
  }

  bool materialised_, cache_;
};

const bool registered = add(method<Softmax>({
    .text = {.name = "softmax",
             .printed = "Softmax (exact)",
             .summary = "exact attention, tiled: the truth and the baseline",
             .formula = "A_ij = exp(q_i.k_j) / sum_l exp(q_i.k_l)",
             .reference = "Vaswani et al. 2017, arXiv:1706.03762, eq. 1",
             .cost = "O(n^2 (d + dv)) time, O(tile) memory beyond input and output",
             .family = "exact",
             .aliases = {"exact", "flash", "flash-attention", "sdpa"}},
    .parameters = {Parameter::choice("form", "tiled", "in tiles, or with the whole matrix in memory, as most code does",
                                     {"tiled", "materialised"})
                       .as_numerics(),
                   Parameter::flag("cache", true,
                                   "decoding keeps keys and values; false: each step computes all tokens again")
                       .as_numerics()},
    .claims =
        [](const Params&, const Shape&) {
          return Claims{.row_stochastic = true,
                        .non_negative = true,
                        .permutation_equivariant = true,
                        .causal_exact = true,
                        .exact_when = exact_always};
        },
    .memory =
        [](const Params& params, const Shape& shape) {
          if (params.text("form") == "tiled") return 0.0;
          return static_cast<double>(shape.nq * shape.nk) * bytes_of(shape.precision);
        },
    .cost =
        [](const Params& params, const Shape& shape) {
          const double all = static_cast<double>(shape.nq * shape.nk), seen = all * (shape.mask.causal ? 0.5 : 1.0);
          const double multiplied = params.text("form") == "materialised" ? all : seen;
          return Work{.flops = 2 * multiplied * static_cast<double>(shape.d + shape.dv), .exps = seen};
        },
    .theory =
        [](const Params&, const Shape&, const Head<double>*) {
          return std::optional(KernelTheory{.target = "exp(q.k)",
                                            .mean = [](const Pair& p) { return p.softmax(); },
                                            .variance = [](const Pair&) { return 0.0; }});
        },
}));

}  // namespace
}  // namespace attnbench::softmax_method
