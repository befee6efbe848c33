// Top-p: softmax over the smallest set of keys that has the share p of a row's weight. Lin et al. 2025 (Twilight),
// arXiv:2502.02770, section 3.
//   M_i = the first keys in the order of softmax's weights a_ij, largest first (ties: lowest index), whose sum is at
//   least p;  A = rownorm(a on M_i)                                                                       methods.md U
// Each row takes as many keys as it needs: few where attention is peaked, most where it is flat. Its L1 error is
// 2 (1 - mass) <= 2 (1 - p), the same promise for every row; top-k promises a number of keys instead. The paper
// estimates the weights from keys in 4 bits, on keys that another method chose; here they are exact, O(n^2 d): a bound
// for it.
#include <cmath>
#include <numeric>

#include "approximations/selection/chosen_keys.hpp"
#include "harness/linalg/rows.hpp"
#include "harness/theory/special_functions.hpp"

namespace attnbench::top_p_method {
namespace {

template <class T>
class LargestMass final : public KeyChoice<T> {
 public:
  LargestMass(const Head<T>& head, double p) : head_(head), p_(p) {}

  void choose(Context& context, Mask mask, Index first, std::span<WeighedKeys<T>> rows,
              std::span<double>) const override {
    const Index count = std::ssize(rows), nk = head_.K.rows(), most = mask.visible(first + count - 1, nk);
    if (most == 0) return;
    Matrix<T> logits(count, most), weights(1, most);
    multiply_transposed<T>(context, row_block(head_.Q, first, count), row_block(head_.K, 0, most), logits);
    for (Index i = 0; i < count; ++i) {
      const Index seen = mask.visible(first + i, nk);
      std::vector<Index>& kept = rows[static_cast<size_t>(i)].keys;
      kept.resize(static_cast<size_t>(seen));
      std::iota(kept.begin(), kept.end(), Index(0));
      std::sort(kept.begin(), kept.end(), [&](Index a, Index b) {
        return logits(i, a) > logits(i, b) || (logits(i, a) == logits(i, b) && a < b);
      });
      weights.row(0) = logits.row(i);
      softmax_within<T>(context, weights, 0, 0, seen);
      double all = 0, sum = 0;
      for (const Index j : kept) all += static_cast<double>(weights(0, j));
      size_t needed = 0;
      while (needed < kept.size() && (p_ == 1 || sum < p_ * all))
        sum += static_cast<double>(weights(0, kept[needed++]));
      kept.resize(needed);
    }
  }

 private:
  Head<T> head_;
  double p_;
};

template <class T>
class TopP final : public SelectedSoftmax<T> {
 public:
  explicit TopP(const Draw& draw) : p_(draw.params.real("p")) {}

 private:
  std::unique_ptr<KeyChoice<T>> choice(const Head<T>& head, Mask, Context&) const override {
    return std::make_unique<LargestMass<T>>(head, p_);
  }

  double p_;
};

// The share of the keys that have the share p of the weight. It depends on the head; here for normal logits of variance
// s^2 = d / 4, as of q and k with entries of variance 1/2: weights exp(x) tilt x to N(s^2, s^2), so the threshold is
// s^2 - s z_p, above which lie Phi(z_p - s) of the keys.
double share_of_keys(double p, double d) {
  if (p == 1) return 1;
  return std::erfc((std::sqrt(d) / 2 - normal_quantile(p)) / std::sqrt(2.0)) / 2;
}

const bool registered = add(method<TopP>({
    .text = {.name = "top-p",
             .printed = "Top-p",
             .summary = "softmax over the fewest keys that have the share p of a row's weight",
             .formula =
                 "A_ij = exp(q_i.k_j) / sum over M_i of exp(q_i.k_l), M_i the fewest keys whose softmax weights sum "
                 "to p; ties to the lowest index",
             .reference = "Lin et al. 2025, arXiv:2502.02770, section 3",
             .cost = "O(n^2 (d + log n) + n kept (d + dv)) time, O(n) memory",
             .family = "selection",
             .departure =
                 "weights are exact and of all keys; there they are estimated from keys in 4 bits that another "
                 "method chose before",
             .aliases = {"twilight"}},
    .parameters = {Parameter::real("p", 0.9, "the share of a row's weight; 1: all keys", 1e-6, 1)},
    .claims =
        [](const Params&, const Shape&) {
          return Claims{.row_stochastic = true,
                        .non_negative = true,
                        .permutation_equivariant = true,
                        .causal_exact = true,
                        .exact_when = "p=1"};
        },
    .memory =
        [](const Params&, const Shape& shape) {
          // Logits of the rows chosen for together, and room for all keys of each, which are sorted.
          const double nk = static_cast<double>(shape.nk), rows = static_cast<double>(gathered_rows);
          return rows * nk * bytes_of(shape.precision) + memory_of_gathered(nk, false, shape);
        },
    .cost =
        [](const Params& params, const Shape& shape) {
          const double scored = sum_over_blocks(shape, [](Index keys) { return keys; });
          const double seen = sum_over_rows(shape, [](Index keys, Index) { return keys; });
          const double pairs = seen * share_of_keys(params.real("p"), static_cast<double>(shape.d));
          return Work{
              .flops = 2 * scored * static_cast<double>(shape.d) + 2 * pairs * static_cast<double>(shape.d + shape.dv),
              .exps = seen + pairs};
        },
}));

}  // namespace
}  // namespace attnbench::top_p_method
