// Top-k: softmax over the k keys of largest weight, ties to the lowest index. methods.md F.
//   M_i = the k largest q_i.k_j among the keys that row i sees;  A = rownorm(softmax's A on M_i)
// Of all patterns with k keys per row it keeps the largest softmax mass p. So it has the least L1 distance 2 (1 - p)
// and the least KL -log p: a bound for all other patterns. It is not fast: it computes all logits, O(n^2 d), and keeps
// O(k) per row.
#include <algorithm>
#include <vector>

#include "approximations/sparse/largest_scores.hpp"
#include "harness/core/approximation.hpp"
#include "harness/linalg/gathered.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench::top_k_method {
namespace {

constexpr Index block_rows = 64;
constexpr Index key_block = 1024;

template <class T>
class TopK final : public Approximation<T>, public Rows<T>, public Pattern<T> {
 public:
  explicit TopK(const Draw& draw) : k_(draw.params.integer("k")) {}

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    for_rows(head, mask, 0, head.Q.rows(), context, [&](Context& single, Index i, LargestScores<T>& best) {
      const auto found = best.found();
      Matrix<T> weights(1, std::ssize(found));
      std::vector<Index> keys;
      keys.reserve(found.size());
      for (const auto& [logit, key] : found) {
        weights(0, std::ssize(keys)) = logit;
        keys.push_back(key);
      }
      softmax_within<T>(single, weights, 0, 0, weights.cols());
      Out<T> of_row = row_block(out, i, 1);
      of_row.setZero();
      add_gathered<T>(single, weights, head.V, keys, of_row);
    });
  }

  const Rows<T>* rows() const override { return this; }
  const Pattern<T>* pattern() const override { return this; }

  void attention_rows(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> A) const override {
    A.setZero();
    for_rows(head, mask, first, A.rows(), context, [&](Context& single, Index i, LargestScores<T>& best) {
      const auto found = best.found();
      Matrix<T> weights(1, static_cast<Index>(found.size()));
      for (Index l = 0; l < weights.cols(); ++l) weights(0, l) = found[static_cast<size_t>(l)].score;
      softmax_within<T>(single, weights, 0, 0, weights.cols());
      for (Index l = 0; l < weights.cols(); ++l) A(i - first, found[static_cast<size_t>(l)].key) = weights(0, l);
    });
  }
  void keys_of_rows(const Head<T>& head, Mask mask, Index first, Context& context,
                    std::span<std::vector<Index>> keys) const override {
    for_rows(head, mask, first, static_cast<Index>(keys.size()), context,
             [&](Context&, Index i, LargestScores<T>& best) {
               auto& of_row = keys[static_cast<size_t>(i - first)];
               of_row.clear();
               for (const auto& found : best.found()) of_row.push_back(found.key);
               std::sort(of_row.begin(), of_row.end());
             });
  }

 private:
  // Calls body(context, i, best of row i) for rows [first, first + count).
  template <class Body>
  void for_rows(const Head<T>& head, Mask mask, Index first, Index total, Context& context, const Body& body) const {
    const Index nk = head.K.rows();
    context.for_blocks(total, block_rows, [&](Context& single, Index begin, Index count) {
      std::vector<LargestScores<T>> best(static_cast<size_t>(count), LargestScores<T>(std::min(k_, nk)));
      const Index needed = mask.visible(first + begin + count - 1, nk);
      Matrix<T> memory(count, std::min(key_block, needed));
      for (Index j = 0; j < needed; j += key_block) {
        const Out<T> logits(memory.data(), count, std::min(key_block, needed - j), std::min(key_block, needed - j));
        multiply_transposed<T>(single, row_block(head.Q, first + begin, count), row_block(head.K, j, logits.cols()),
                               logits);
        for (Index i = 0; i < count; ++i) {
          const Index seen = std::clamp<Index>(mask.visible(first + begin + i, nk) - j, 0, logits.cols());
          best[static_cast<size_t>(i)].add(j, {logits.data() + i * logits.cols(), static_cast<size_t>(seen)});
        }
      }
      for (Index i = 0; i < count; ++i) body(single, first + begin + i, best[static_cast<size_t>(i)]);
    });
  }

  Index k_;
};

const bool registered = add(method<TopK>({
    .text = {.name = "top-k",
             .printed = "Top-k",
             .summary = "softmax over the k keys of largest weight: the best that k keys a row can do",
             .formula =
                 "A_ij = exp(q_i.k_j) / sum over the k largest exp(q_i.k_l), for those j; ties to the lowest index",
             .reference = "Gupta et al. 2021, arXiv:2106.06899",
             .cost = "O(n^2 d + n k dv) time, O(k) memory a row",
             .family = "sparse"},
    .parameters = {Parameter::integer("k", 64, "keys of a row", 1).as_budget()},
    .claims =
        [](const Params&, const Shape&) {
          return Claims{.row_stochastic = true,
                        .non_negative = true,
                        .permutation_equivariant = true,
                        .causal_exact = true,
                        .exact_when = "k=1000000000"};
        },
    .memory =
        [](const Params& params, const Shape& shape) {
          // For the rows of one thread: 2k candidates with their indices, and the keys and weights of one row.
          const double k = static_cast<double>(std::min(params.integer("k"), shape.nk));
          return k * (block_rows * 2 * 16.0 + sizeof(Index) + bytes_of(shape.precision));
        },
    .cost =
        [](const Params& params, const Shape& shape) {
          const auto n = static_cast<double>(shape.nq), nk = static_cast<double>(shape.nk);
          const double k = std::min(static_cast<double>(params.integer("k")), nk);
          const double logits = n * nk * (shape.mask.causal ? 0.5 : 1.0);
          return Work{.flops = 2 * logits * static_cast<double>(shape.d) + 2 * n * k * static_cast<double>(shape.dv),
                      .exps = n * k};
        },
}));

}  // namespace
}  // namespace attnbench::top_k_method
