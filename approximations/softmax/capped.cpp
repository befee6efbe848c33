// Softmax of capped logits. Bello et al. 2016, arXiv:1611.09940; in the attention of Gemma 2 (Gemma Team 2024), c = 50.
//   A_ij = exp(c tanh(q_i.k_j / c)) / sum_l exp(c tanh(q_i.k_l / c))
// No weight of a row is more than e^(2 c) times another, and small logits stay as they are: c tanh(x / c) = x - x^3 /
// (3 c^2) + ... It is an operator of its own, not an estimate of softmax. tanh is no product of a number of the query
// and one of the key, so that no input can bring the cap to other methods (methods.md W).
#include <algorithm>
#include <cmath>

#include "harness/core/approximation.hpp"
#include "harness/linalg/products.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench::capped_method {
namespace {

template <class T>
class Capped final : public Approximation<T>, public Kernel<T>, public Rows<T> {
 public:
  explicit Capped(const Draw& draw) : cap_(static_cast<T>(draw.params.real("cap"))) {}

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    context.for_blocks(head.Q.rows(), block_rows, [&](Context& single, Index begin, Index count) {
      const Index seen = mask.visible(begin + count - 1, head.K.rows());
      if (seen == 0) return void(row_block(out, begin, count).setZero());
      Matrix<T> A(count, seen);
      weigh(row_block(head.Q, begin, count), row_block(head.K, 0, seen), mask, begin, single, A);
      multiply<T>(single, A, row_block(head.V, 0, seen), row_block(out, begin, count));
    });
  }

  const Kernel<T>* kernel() const override { return this; }
  const Rows<T>* rows() const override { return this; }

  void kernel(const Head<T>& head, Context& context, Out<T> block, std::span<T> log_rows,
              std::span<T> log_columns) const override {
    capped_logits(head.Q, head.K, context, block);
    row_maxima<T>(block, log_rows);
    exponentiate_rows<T>(context, block, log_rows);
    std::fill(log_columns.begin(), log_columns.end(), T(0));
  }

  void attention_rows(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> A) const override {
    weigh(row_block(head.Q, first, A.rows()), head.K, mask, first, context, A);
  }

 private:
  static constexpr Index block_rows = 64;

  void capped_logits(const In<T>& Q, const In<T>& K, Context& context, Out<T> block) const {
    multiply_transposed<T>(context, Q, K, block);
    block = cap_ * (block / cap_).array().tanh().matrix();
    context.work.exps += static_cast<double>(block.size());
  }

  void weigh(const In<T>& Q, const In<T>& K, Mask mask, Index first, Context& context, Out<T> A) const {
    capped_logits(Q, K, context, A);
    for (Index i = 0; i < A.rows(); ++i) softmax_within<T>(context, A, i, 0, mask.visible(first + i, A.cols()));
  }

  T cap_;
};

const bool registered = add(method<Capped>({
    .text = {.name = "capped",
             .printed = "Softmax, capped logits",
             .summary = "softmax of logits that a hyperbolic tangent keeps between -cap and cap",
             .formula = "A_ij = exp(c tanh(q_i.k_j / c)) / sum_l exp(c tanh(q_i.k_l / c)), c the cap",
             .reference = "Bello et al. 2016, arXiv:1611.09940; Gemma Team 2024 for attention",
             .cost = "O(n^2 (d + dv)) time, O(n) memory",
             .family = "exact",
             .aliases = {"capped-softmax", "logit-cap"}},
    .parameters = {Parameter::real("cap", 50, "c, the largest logit; Gemma 2 has 50", 1e-3, 1e9)},
    .claims =
        [](const Params&, const Shape&) {
          return Claims{.row_stochastic = true,
                        .non_negative = true,
                        .permutation_equivariant = true,
                        .causal_exact = true,
                        .exact_when = "cap=1000000000"};
        },
    .memory =
        [](const Params&, const Shape& shape) {
          return static_cast<double>(std::min<Index>(64, shape.nq) * shape.nk) * bytes_of(shape.precision);
        },
    .cost =
        [](const Params&, const Shape& shape) {
          const double pairs = static_cast<double>(shape.nq * shape.nk) * (shape.mask.causal ? 0.5 : 1.0);
          return Work{.flops = 2 * pairs * static_cast<double>(shape.d + shape.dv), .exps = 2 * pairs};
        },
    .theory =
        [](const Params& params, const Shape&, const Head<double>*) {
          const double cap = params.real("cap");
          return std::optional(
              KernelTheory{.target = "exp(c tanh(q.k / c))",
                           .mean = [cap](const Pair& p) { return std::exp(cap * std::tanh(p.qk / cap)); },
                           .variance = [](const Pair&) { return 0.0; }});
        },
}));

}  // namespace
}  // namespace attnbench::capped_method
