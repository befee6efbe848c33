// Synthesizer: attention whose logits are made without comparing tokens. Tay et al., arXiv:2005.00743.
//   out = softmax(B) V, B nq x nk                                                                 methods.md G
// kind=random and factorised: B is learnt and reads no input, so A is the same for all inputs. dense and
// factorised-dense: row i of B is a network of q_i alone. synthetic_logits.hpp has the formulas. K is never read.
// Causal: the logits of later keys are dropped before the softmax, so rows sum to one over the keys that they see.
// O(n^2 dv) time; the logits are made 64 rows at a time. State: n^2 (random), 2 n k (factorised), hidden (d + n)
// (dense), hidden (2 d + 2 sqrt n) (factorised-dense).
#include "approximations/mixers/synthetic_logits.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench::synthesizer_method {
namespace {

constexpr Index block_rows = 64;

template <class T>
class Synthesizer final : public Approximation<T>, public Rows<T> {
 public:
  explicit Synthesizer(const Draw& draw) : logits_(synthetic_logits<T>(draw)) {}

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    context.for_blocks(head.Q.rows(), block_rows, [&](Context& single, Index begin, Index count) {
      auto block = row_block(out, begin, count);
      const Index keys = mask.visible(begin + count - 1, head.K.rows());
      if (keys == 0) return void(block.setZero());
      Matrix<T> weights(count, keys);
      attention_weights(head, mask, begin, single, weights);
      multiply<T>(single, weights, row_block(head.V, 0, keys), block);
    });
  }

  const Rows<T>* rows() const override { return this; }
  Tensors state() const override { return logits_->state(); }

  void attention_rows(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> A) const override {
    attention_weights(head, mask, first, context, A);
  }

 private:
  // Rows from `begin` on, over the first weights.cols() keys; these rows see no others.
  void attention_weights(const Head<T>& head, Mask mask, Index begin, Context& context, Out<T> weights) const {
    Index before = 0;  // rows at positions below 0, which see no key and have no weights
    while (before < weights.rows() && mask.visible(begin + before, head.K.rows()) == 0) ++before;
    weights.topRows(before).setZero();
    if (before == weights.rows()) return;
    auto placed = row_block(weights, before, weights.rows() - before);
    const Index first = begin + before;
    logits_->logits(head, first, first + mask.offset, context, placed);
    for (Index i = 0; i < placed.rows(); ++i)
      softmax_within<T>(context, placed, i, 0, mask.visible(first + i, head.K.rows()));
  }

  std::unique_ptr<SyntheticLogits<T>> logits_;
};

const bool registered = add(method<Synthesizer>({
    .text = {.name = "synthesizer",
             .printed = "Synthesizer",
             .summary = "softmax of logits that no two tokens are compared for",
             .formula = "A = softmax(B), B = R (random), R1 R2^T (factorised), W2 relu(W1 q_i + b1) + b2 (dense)",
             .reference = "Tay et al. 2020, arXiv:2005.00743, section 3",
             .cost = "O(n^2 dv) time; dense: n hidden (d + n) more; O(n) memory beyond state, input and output",
             .family = "mixers"},
    .parameters = {Parameter::choice("kind", "random", "where the logits come from",
                                     {"random", "factorised", "dense", "factorised-dense"}),
                   Parameter::integer("k", 8, "rank of the logits (factorised)", 1, 1 << 16),
                   Parameter::integer("hidden", 64, "hidden width (dense, factorised-dense)", 1, 1 << 16)},
    .claims =
        [](const Params& params, const Shape& shape) {
          return Claims{.row_stochastic = true,
                        .non_negative = true,
                        .no_form = of_positions_alone(params) ? no_weights_for_rows(shape) : "",
                        .causal_exact = true};
        },
    .memory =
        [](const Params& params, const Shape& shape) {
          const bool dense = !of_positions_alone(params);
          return static_cast<double>(block_rows * (shape.nk + (dense ? params.integer("hidden") : 0))) *
                 bytes_of(shape.precision);
        },
    .cost =
        [](const Params& params, const Shape& shape) {
          const double pairs =
              static_cast<double>(shape.nq) * static_cast<double>(shape.nk) / (shape.mask.causal ? 2 : 1);
          return Work{.flops = flops_of_logits(params, shape) + 2 * pairs * static_cast<double>(shape.dv),
                      .exps = pairs};
        },
    .caveats =
        [](const Params& params, const Shape&) {
          std::vector<std::string> all{drawn_not_trained};
          if (of_positions_alone(params)) all.push_back("A does not depend on the tokens");
          return all;
        },
}));

}  // namespace
}  // namespace attnbench::synthesizer_method
