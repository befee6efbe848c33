// Top-k: softmax over the k keys of largest weight, ties to the lowest index. methods.md F.
//   M_i = the k largest q_i.k_j among the keys that row i sees;  A = rownorm(softmax's A on M_i)
// Of all patterns with k keys per row it keeps the largest softmax mass p. So it has the least L1 distance 2 (1 - p)
// and the least KL -log p: a bound for all other patterns. It is not fast: it computes all logits, O(n^2 d), and keeps
// O(k) per row.
#include <algorithm>
#include <vector>

#include "harness/core/approximation.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench {
namespace {

constexpr Index block_rows = 64;
constexpr Index key_block = 1024;

// The k best of the keys added so far. Keys must be added in ascending order of their indices.
template <class T>
class Best {
 public:
  explicit Best(Index k) : k_(static_cast<size_t>(k)) {}

  void add(Index first, std::span<const T> logits) {
    for (size_t j = 0; j < logits.size(); ++j) {
      if (full_ && logits[j] <= least_) continue;  // on a tie the earlier key stays
      found_.push_back({logits[j], first + static_cast<Index>(j)});
      if (found_.size() >= 2 * k_ && found_.size() >= 64) cut();
    }
  }
  // Keys and logits.
  struct Found {
    T logit;
    Index key;
  };
  const std::vector<Found>& sorted() {
    if (found_.size() > k_) cut();
    std::sort(found_.begin(), found_.end(), [](const Found& a, const Found& b) { return a.key < b.key; });
    return found_;
  }

 private:
  void cut() {
    const auto kth = found_.begin() + static_cast<std::ptrdiff_t>(k_) - 1;
    std::nth_element(found_.begin(), kth, found_.end(), [](const Found& a, const Found& b) {
      return a.logit > b.logit || (a.logit == b.logit && a.key < b.key);
    });
    least_ = kth->logit;
    full_ = true;
    found_.resize(k_);
  }

  size_t k_;
  std::vector<Found> found_;
  bool full_ = false;
  T least_ = 0;  // the least logit of the k best so far, if full_
};

template <class T>
class TopK final : public Approximation<T>, public Rows<T>, public Pattern<T> {
 public:
  explicit TopK(const Draw& draw) : k_(draw.params.integer("k")) {}

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    for_rows(head, mask, 0, head.Q.rows(), context, [&](Context& single, Index i, Best<T>& best) {
      const auto& found = best.sorted();
      const auto count = static_cast<Index>(found.size());
      Matrix<T> weights(1, count), values(count, head.V.cols());
      for (Index l = 0; l < count; ++l) {
        weights(0, l) = found[static_cast<size_t>(l)].logit;
        values.row(l) = head.V.row(found[static_cast<size_t>(l)].key);
      }
      softmax_within<T>(single, weights, 0, 0, count);
      multiply<T>(single, weights, values, row_block(out, i, 1));
    });
  }

  const Rows<T>* rows() const override { return this; }
  const Pattern<T>* pattern() const override { return this; }

  void attention_rows(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> A) const override {
    A.setZero();
    for_rows(head, mask, first, A.rows(), context, [&](Context& single, Index i, Best<T>& best) {
      const auto& found = best.sorted();
      Matrix<T> weights(1, static_cast<Index>(found.size()));
      for (Index l = 0; l < weights.cols(); ++l) weights(0, l) = found[static_cast<size_t>(l)].logit;
      softmax_within<T>(single, weights, 0, 0, weights.cols());
      for (Index l = 0; l < weights.cols(); ++l) A(i - first, found[static_cast<size_t>(l)].key) = weights(0, l);
    });
  }
  void keys_of_rows(const Head<T>& head, Mask mask, Index first, Context& context,
                    std::span<std::vector<Index>> keys) const override {
    for_rows(head, mask, first, static_cast<Index>(keys.size()), context, [&](Context&, Index i, Best<T>& best) {
      auto& of_row = keys[static_cast<size_t>(i - first)];
      of_row.clear();
      for (const auto& found : best.sorted()) of_row.push_back(found.key);
    });
  }

 private:
  // Calls body(context, i, best of row i) for rows [first, first + count).
  template <class Body>
  void for_rows(const Head<T>& head, Mask mask, Index first, Index total, Context& context, const Body& body) const {
    const Index nk = head.K.rows();
    context.for_blocks(total, block_rows, [&](Context& single, Index begin, Index count) {
      std::vector<Best<T>> best(static_cast<size_t>(count), Best<T>(std::min(k_, nk)));
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
          // For the rows of one thread: 2k candidates with their indices, and the values of one row.
          const double k = static_cast<double>(std::min(params.integer("k"), shape.nk));
          return k * (block_rows * 2 * 16.0 + static_cast<double>(shape.dv) * bytes_of(shape.precision));
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
}  // namespace attnbench
