// Exact softmax attention: the truth and the baseline. Vaswani et al., arXiv:1706.03762, eq. 1.
//   out_i = sum_j exp(q_i.k_j) v_j / sum_j exp(q_i.k_j)
// Tiled with online rescaling (methods.md H): each tile of rows keeps the running maximum, sum and output, never n x n.
#include <cmath>

#include "approximations/softmax/key_value_cache.hpp"
#include "approximations/softmax/recomputation.hpp"
#include "harness/core/approximation.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench {
namespace {

constexpr Index query_block = 256;
constexpr Index key_block = 512;

// Adds the weights exp(logits - maximum) of one tile to the running sums of its rows. Entries at and beyond visible(i)
// are masked.
template <class T>
struct RunningRows {
  explicit RunningRows(Index rows)
      : maximum(static_cast<size_t>(rows), -std::numeric_limits<T>::infinity()), sum(maximum.size(), T(0)) {}

  template <class Visible>
  void add(Context& context, Out<T> logits, Out<T> output, const Visible& visible) {
    for (Index i = 0; i < logits.rows(); ++i) {
      const auto r = static_cast<size_t>(i);
      const Index seen = visible(i);
      logits.row(i).tail(logits.cols() - seen).setZero();
      if (seen == 0) continue;
      auto row = logits.row(i).head(seen).array();
      const T fresh = std::max(maximum[r], row.maxCoeff());
      const T factor = std::exp(maximum[r] - fresh);
      row = (row - fresh).exp();
      sum[r] = sum[r] * factor + row.sum();
      if (factor != 1) output.row(i) *= factor;
      maximum[r] = fresh;
      context.work.exps += static_cast<double>(seen);
    }
  }

  std::vector<T> maximum, sum;
};

template <class T>
class Softmax final : public Approximation<T>, public Kernel<T>, public Rows<T> {
 public:
  explicit Softmax(const Draw& draw) : cache_(draw.params.flag("cache")) {}

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    const Index nk = head.K.rows();
    context.for_blocks(head.Q.rows(), query_block, [&](Context& single, Index begin, Index count) {
      Matrix<T> logits(count, std::min(key_block, nk));
      Matrix<T> output = Matrix<T>::Zero(count, head.V.cols());
      RunningRows<T> running(count);
      const Index needed = mask.visible(begin + count - 1, nk);
      for (Index j = 0; j < needed; j += key_block) {
        const Index keys = std::min(key_block, needed - j);
        auto tile = corner(logits, count, keys);
        multiply_transposed<T>(single, attnbench::rows(head.Q, begin, count), attnbench::rows(head.K, j, keys), tile);
        running.add(single, tile, output,
                    [&](Index i) { return std::clamp<Index>(mask.visible(begin + i, nk) - j, 0, keys); });
        multiply_add<T>(single, tile, attnbench::rows(head.V, j, keys), output);
      }
      for (Index i = 0; i < count; ++i)
        if (const T sum = running.sum[static_cast<size_t>(i)]; sum > 0) output.row(i) /= sum;
      attnbench::rows(out, begin, count) = output;
    });
  }

  const Kernel<T>* kernel() const override { return this; }
  const Rows<T>* rows() const override { return this; }
  std::unique_ptr<Decoder<T>> decoder(const Shape& shape) const override {
    if (cache_) return std::make_unique<KeyValueCache<T>>(shape);
    return std::make_unique<Recomputation<T>>(*this, shape);
  }

  void kernel(const Head<T>& head, Context& context, Out<T> block, std::span<T> log_rows,
              std::span<T> log_columns) const override {
    multiply_transposed<T>(context, head.Q, head.K, block);
    row_maxima<T>(block, log_rows);
    exponentiate_rows<T>(context, block, log_rows);
    std::fill(log_columns.begin(), log_columns.end(), T(0));
  }

  void attention_rows(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> A) const override {
    multiply_transposed<T>(context, attnbench::rows(head.Q, first, A.rows()), head.K, A);
    for (Index i = 0; i < A.rows(); ++i) softmax_within<T>(context, A, i, 0, mask.visible(first + i, A.cols()));
  }

 private:
  bool cache_;
};

const bool registered = add(method<Softmax>({
    .text = {.name = "softmax",
             .summary = "exact attention, tiled: the truth and the baseline",
             .formula = "A_ij = exp(q_i.k_j) / sum_l exp(q_i.k_l)",
             .reference = "Vaswani et al. 2017, arXiv:1706.03762, eq. 1",
             .cost = "O(n^2 (d + dv)) time, O(block n) memory beyond input and output",
             .family = "exact"},
    .parameters = {Parameter::flag("cache", true,
                                   "decoding keeps keys and values; false: each step computes all tokens again")},
    .claims =
        [](const Params&, const Shape&) {
          return Claims{
              .row_stochastic = true, .non_negative = true, .permutation_equivariant = true, .causal_exact = true};
        },
    .cost =
        [](const Params&, const Shape& shape) {
          const double pairs = static_cast<double>(shape.nq * shape.nk) * (shape.mask.causal ? 0.5 : 1.0);
          return Work{.flops = 2 * pairs * static_cast<double>(shape.d + shape.dv), .exps = pairs};
        },
    .theory =
        [](const Params&, const Shape&, const Head<double>*) {
          return std::optional(KernelTheory{.target = "exp(q.k)",
                                            .mean = [](const Pair& p) { return p.softmax(); },
                                            .variance = [](const Pair&) { return 0.0; }});
        },
}));

}  // namespace
}  // namespace attnbench
