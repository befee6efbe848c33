// Heavy hitters (H2O): keeps the tokens that received most attention so far, and the most recent ones. Zhang et al.,
// arXiv:2306.14048, Algorithm 1.
//   row i sees S_i, at most h + r tokens, itself one of them;  A = rownorm(softmax's A on S_i)
//   score_j = sum over the rows l <= i with j in S_l of A_lj
//   S_{i+1} = S_i and token i + 1; if that is h + r + 1 tokens, the one with the least score that is not among the last
//   r is evicted (ties: the first)
// Prompts are processed token by token too; the paper's code treats a prompt in one step, with another result. h = 0 is
// local attention of window r - 1; a budget of n tokens is exact.
#include <algorithm>
#include <limits>
#include <vector>

#include "approximations/softmax/key_value_cache.hpp"

namespace attnbench::heavy_hitter_method {
namespace {

template <class T>
class LeastScore final : public Eviction<T> {
 public:
  LeastScore(Index heavy, Index recent) : heavy_(heavy), recent_(recent) {}

  Index slots() const override { return heavy_ + recent_; }
  Index evict(Index position) const override {
    Index least = -1;
    for (Index s = 0; s < static_cast<Index>(kept_.size()); ++s) {
      const Kept& token = at(s);
      if (token.position + recent_ > position) continue;
      if (least < 0 || token.score < at(least).score ||
          (token.score == at(least).score && token.position < at(least).position))
        least = s;
    }
    return least;
  }
  void placed(Index position, Index slot) override {
    if (slot == static_cast<Index>(kept_.size()))
      kept_.push_back({position, 0});
    else
      kept_[static_cast<size_t>(slot)] = {position, 0};
  }
  bool looks_at_attention() const override { return true; }
  void attended(std::span<const T> weights) override {
    for (size_t s = 0; s < weights.size(); ++s) kept_[s].score += static_cast<double>(weights[s]);
  }
  size_t bytes(Index kept) const override { return static_cast<size_t>(kept) * sizeof(Kept); }

  Index position(Index slot) const { return at(slot).position; }

 private:
  struct Kept {
    Index position;
    double score;  // attention received so far
  };
  const Kept& at(Index slot) const { return kept_[static_cast<size_t>(slot)]; }

  Index heavy_, recent_;
  std::vector<Kept> kept_;  // by slot
};

template <class T>
class HeavyHitter final : public Approximation<T>, public Rows<T>, public Pattern<T> {
 public:
  explicit HeavyHitter(const Draw& draw)
      : heavy_(draw.params.integer("heavy")), recent_(draw.params.integer("recent")) {}

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    follow(head, mask, head.Q.rows(), context,
           [&](Index i, const Matrix<T>& row, const In<T>&, const LeastScore<T>&) { out.row(i) = row; });
  }

  const Rows<T>* rows() const override { return this; }
  const Pattern<T>* pattern() const override { return this; }
  std::unique_ptr<Decoder<T>> decoder(const Shape& shape) const override {
    return std::make_unique<KeyValueCache<T>>(shape, std::make_unique<LeastScore<T>>(heavy_, recent_));
  }

  void attention_rows(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> A) const override {
    A.setZero();
    follow(head, mask, first + A.rows(), context,
           [&](Index i, const Matrix<T>&, const In<T>& weights, const LeastScore<T>& kept) {
             if (i < first) return;
             for (Index s = 0; s < weights.cols(); ++s) A(i - first, kept.position(s)) = weights(0, s);
           });
  }
  void keys_of_rows(const Head<T>& head, Mask mask, Index first, Context& context,
                    std::span<std::vector<Index>> keys) const override {
    follow(head, mask, first + static_cast<Index>(keys.size()), context,
           [&](Index i, const Matrix<T>&, const In<T>& weights, const LeastScore<T>& kept) {
             if (i < first) return;
             auto& row = keys[static_cast<size_t>(i - first)];
             row.clear();
             for (Index s = 0; s < weights.cols(); ++s) row.push_back(kept.position(s));
             std::sort(row.begin(), row.end());
           });
  }

 private:
  // Decodes rows [0, rows): for each row it first adds the keys that the row newly sees, then reads.
  template <class Sink>
  void follow(const Head<T>& head, Mask mask, Index rows, Context& context, const Sink& sink) const {
    const Index nk = head.K.rows();
    auto eviction = std::make_unique<LeastScore<T>>(heavy_, recent_);
    const LeastScore<T>& kept = *eviction;
    KeyValueCache<T> cache({.nk = nk, .d = head.K.cols(), .dv = head.V.cols()}, std::move(eviction));
    Matrix<T> row(1, head.V.cols());
    Index seen = 0;
    for (Index i = 0; i < rows; ++i) {
      for (const Index visible = mask.visible(i, nk); seen < visible; ++seen)
        cache.add(row_block(head.K, seen, 1), row_block(head.V, seen, 1));
      cache.read(row_block(head.Q, i, 1), context, row);
      sink(i, row, cache.weights(), kept);
    }
  }

  Index heavy_, recent_;
};

const bool registered = add(method<HeavyHitter>({
    .text = {.name = "heavy-hitter",
             .printed = "Heavy hitters",
             .summary = "softmax over the tokens that got most attention so far and the last ones",
             .formula = "A_ij = exp(q_i.k_j) / sum over S_i of exp(q_i.k_l), for j in S_i, which loses the least heard",
             .reference = "Zhang et al. 2023, H2O, arXiv:2306.14048, Algorithm 1",
             .cost = "O(n (h + r) (d + dv)) time, O((h + r) (d + dv)) memory beyond input and output",
             .family = "sparse",
             .departure = "processes a prompt token by token, as Algorithm 1 says; the paper's code takes it in one "
                          "step, with another result",
             .aliases = {"h2o"}},
    .parameters = {Parameter::integer("heavy", 64, "tokens kept for the attention that they got", 0).as_budget(),
                   Parameter::integer("recent", 64, "last tokens, always kept, the row's own included", 1)},
    .claims =
        [](const Params&, const Shape& shape) {
          return Claims{.row_stochastic = true,
                        .non_negative = true,
                        .no_form = shape.mask.causal ? "" : "what is kept for a row is what earlier rows looked at",
                        .causal_exact = true,
                        .exact_when = "heavy=1000000000"};
        },
    .memory = [](const Params&, const Shape&) { return 0.0; },
    .cost =
        [](const Params& params, const Shape& shape) {
          const Index budget = params.integer("heavy") + params.integer("recent");
          const double pairs = static_cast<double>(shape.nq * std::min(budget, shape.nk));
          return Work{.flops = 2 * pairs * static_cast<double>(shape.d + shape.dv), .exps = pairs};
        },
}));

}  // namespace
}  // namespace attnbench::heavy_hitter_method
