// Eviction: one set of keys for all rows, chosen once by a score of each key. Row i sees the kept keys before it and
// its own key, as in decoding, where the token's own key is in the cache. methods.md U
// The first `keep` keys are kept of those at the beginning that `protect` names, then of those at the positions of the
// queries that gave the score, then in the order of the score (ties: the first key). A score may depend on later
// tokens: this prepares a prompt.
#include <numeric>
#include <tuple>

#include "approximations/selection/chosen_keys.hpp"
#include "approximations/selection/head_pattern.hpp"
#include "harness/core/key_score.hpp"

namespace attnbench {
namespace {

const KeyScoreEntry& score_of(const Params& params) { return find<KeyScoreEntry>(params.text("score")); }

// The kept keys, which all rows share, in tiles; and each row's own key where it is not one of them.
class KeptAndOwn final : public SparsePattern {
 public:
  KeptAndOwn(std::vector<Index> kept, Index keys) : is_kept_(static_cast<size_t>(keys), false) {
    for (const Index j : kept) is_kept_[static_cast<size_t>(j)] = true;
    kept_ = runs_of(kept);
  }
  std::vector<PatternPart> parts(Index nq, Mask) const override { return {{.end = nq}, {.end = nq, .tile_rows = 1}}; }
  void keys(size_t part, Index position, Index visible, std::vector<IndexRun>& runs) const override {
    if (part == 1) {
      if (position >= 0 && position < visible && !is_kept_[static_cast<size_t>(position)])
        runs.push_back({position, 1});
      return;
    }
    for (const IndexRun& run : kept_)
      if (run.first < visible) runs.push_back({run.first, std::min(run.count, visible - run.first)});
  }

 private:
  std::vector<bool> is_kept_;
  std::vector<IndexRun> kept_;
};

template <class T>
class Evict final : public HeadPattern<T> {
 public:
  explicit Evict(const Draw& draw)
      : params_(draw.params),
        score_(score_of(draw.params)),
        keep_(draw.params.integer("keep")),
        protect_(draw.params.integer("protect")) {
    if (!score_.draw) return;
    const auto* given = draw.injected("uniforms", draw.shape.nk, 1);
    drawn_ = given ? *given : score_.draw(draw);
  }

  Tensors state() const override { return score_.draw ? Tensors{{"uniforms", drawn_}} : Tensors{}; }

 private:
  std::unique_ptr<const SparsePattern> pattern_of(const Head<T>& head, Mask mask, Context& context) const override {
    const Index nq = head.Q.rows(), keys = nq > 0 ? mask.visible(nq - 1, head.K.rows()) : 0;
    std::vector<Index> kept(static_cast<size_t>(keys));
    std::iota(kept.begin(), kept.end(), Index(0));
    if (keys > keep_) {
      const std::vector<double> scores = scores_of(context, head, mask, keys);
      const Index last = std::min(score_.last_queries(params_), nq);
      const Index own = last > 0 ? std::clamp<Index>(nq - last + mask.offset, 0, keys) : keys;
      keep_largest(kept, keep_,
                   [&](Index j) { return std::tuple(j < protect_, j >= own, scores[static_cast<size_t>(j)]); });
    }
    return std::make_unique<KeptAndOwn>(std::move(kept), head.K.rows());
  }

  // Of the first `keys` keys.
  std::vector<double> scores_of(Context& context, const Head<T>& head, Mask mask, Index keys) const {
    if constexpr (std::is_same_v<T, double>)
      return score_.score(params_, {head.Q, row_block(head.K, 0, keys), row_block(head.V, 0, keys)}, mask, context,
                          drawn_);
    const HeadData<double> wide{head.Q.template cast<double>(), head.K.topRows(keys).template cast<double>(),
                                head.V.topRows(keys).template cast<double>()};
    return score_.score(params_, wide.view(), mask, context, drawn_);
  }

  Params params_;
  const KeyScoreEntry& score_;
  Index keep_, protect_;
  Matrix<double> drawn_;  // nk x 1, if the score draws numbers
};

const bool registered = add(method<Evict>({
    .text =
        {.name = "evict",
         .printed = "Eviction",
         .summary = "softmax over one set of keys for all rows, those of the largest scores, and the row's own key",
         .formula = "A_ij = exp(q_i.k_j) / sum over S and i of exp(q_i.k_l), S the keep keys of largest score",
         .reference = "Li et al. 2024 (SnapKV), arXiv:2404.14469; Oren et al. 2024 (TOVA), arXiv:2401.06104; Devoto "
                      "et al. 2024, arXiv:2406.11430; Park et al. 2025 (KeyDiff), arXiv:2504.15364; Chari and Van "
                      "Durme 2025, arXiv:2507.08143; Devoto et al. 2025, arXiv:2510.00636",
         .cost =
             "O(n keep (d + dv)) time, and that of the score; O(n (d + dv)) memory in float, where the score is of a "
             "copy in double",
         .family = "selection",
         .departure = "the keys of one head are chosen once, for a prompt; the authors' systems also evict while they "
                      "decode, and divide a budget over heads and layers",
         .aliases = {"snapkv", "kv-eviction"}},
    .parameters = {Parameter::integer("keep", 128, "keys kept", 1).as_budget(),
                   Parameter::entry("score", "snapkv", "of a key; keys of large score are kept", "key-scores"),
                   Parameter::integer("protect", 0, "first keys that are kept before all others", 0)},
    .claims =
        [](const Params& params, const Shape&) {
          const bool values = score_of(params).reads_values;
          return Claims{.row_stochastic = true,
                        .non_negative = true,
                        .linear_in_V = !values,
                        .no_attention_matrix = values ? "the values decide which keys are kept" : "",
                        .exact_when = "keep=1000000000"};
        },
    .memory =
        [](const Params& params, const Shape& shape) {
          const double nk = static_cast<double>(shape.nk), nq = static_cast<double>(shape.nq);
          const double copies =
              shape.precision == Precision::f32
                  ? sizeof(double) * (nk * static_cast<double>(shape.d + shape.dv) + nq * static_cast<double>(shape.d))
                  : 0;
          return copies + score_of(params).memory(params, shape) + 32 * nk + 2 * nq * bytes_of(shape.precision);
        },
    .cost =
        [](const Params& params, const Shape& shape) {
          const double nk = static_cast<double>(shape.nk), d = static_cast<double>(shape.d);
          const double share = std::min(1.0, static_cast<double>(params.integer("keep")) / nk);
          const double kept = share * sum_over_blocks(shape, [](Index seen) { return seen; });
          const double own = share < 1 ? (1 - share) * static_cast<double>(shape.nq) : 0;
          const Work scores = share < 1 ? score_of(params).work(params, shape) : Work{};
          return Work{.flops = scores.flops + 2 * (kept + own) * (d + static_cast<double>(shape.dv)),
                      .exps = scores.exps + kept + own};
        },
    .check = [](const Params& params) { score_of(params).check(params); },
}));

}  // namespace
}  // namespace attnbench
