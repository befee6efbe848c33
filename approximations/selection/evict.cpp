// Eviction: one set of keys for all rows, chosen once by a score of each key. Row i sees the kept keys before it and
// its own key, as in decoding, where the token's own key is in the cache. methods.md U
// The first `keep` keys are kept of those at the beginning that `protect` names, then of those at the positions of the
// queries that gave the score, then in the order of the score (ties: the first key). A score may depend on later
// tokens: this prepares a prompt.
// prompt=P: the first P tokens are the prompt. Its own rows see all keys, as a system computes them before it evicts;
// later rows see the kept keys of the prompt and all tokens after it. No row depends on later tokens then, and a
// decoder holds keep + t - P tokens at position t.
#include <numeric>
#include <tuple>

#include "approximations/selection/chosen_keys.hpp"
#include "approximations/selection/head_pattern.hpp"
#include "approximations/softmax/key_value_cache.hpp"
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

// Rows of the prompt see all keys; later rows those kept of the prompt, and all keys behind it.
class KeptAndLater final : public SparsePattern {
 public:
  KeptAndLater(std::vector<Index> kept, Index prompt) : kept_(runs_of(kept)), prompt_(prompt) {}

  std::vector<PatternPart> parts(Index nq, Mask mask) const override {
    const Index later = std::clamp<Index>(prompt_ - mask.offset, 0, nq);
    return {{.end = later}, {.begin = later, .end = nq}, {.begin = later, .end = nq}};
  }
  void keys(size_t part, Index, Index visible, std::vector<IndexRun>& runs) const override {
    if (part == 0) runs.push_back({0, visible});
    if (part == 1) runs.insert(runs.end(), kept_.begin(), kept_.end());
    if (part == 2) runs.push_back(run_between(prompt_, visible));
  }

 private:
  std::vector<IndexRun> kept_;
  Index prompt_;
};

// Holds all tokens of a prompt, then those kept of them, and all that come behind it.
template <class T>
class PromptDecoder final : public Decoder<T> {
 public:
  // The keys that are kept of a prompt, ascending.
  using Keep = std::function<std::vector<Index>(const Head<T>& prompt, Context&)>;

  PromptDecoder(const Shape& shape, Index prompt, Keep keep)
      : shape_(shape), length_(prompt), keep_(std::move(keep)), cache_(std::make_unique<KeyValueCache<T>>(shape)) {
    const Index held = std::min(prompt, shape.nk);
    prompt_ = {Matrix<T>(held, shape.d), Matrix<T>(held, shape.d), Matrix<T>(held, shape.dv)};
  }

  void prefill(const Head<T>& tokens, Context& context) override {
    for (Index j = 0; j < tokens.K.rows(); ++j) {
      make_room(context);
      add(HeadPart<T>::tokens(tokens, j, 1).view());
    }
  }
  void step(const Head<T>& token, Context& context, Out<T> out) override {
    make_room(context);
    add(token);
    cache_->read(token.Q, context, out);
  }
  // The copy of the prompt serves its queries, which an evicting system has at hand when it evicts.
  size_t bytes() const override { return cache_->bytes(); }

 private:
  // Evicts tokens of the prompt when the first token behind it comes.
  void make_room(Context& context) {
    if (evicted_ || came_ < length_) return;
    evicted_ = true;
    const std::vector<Index> kept = keep_(prompt_.view(), context);
    Shape left = shape_;
    left.nk = std::ssize(kept) + shape_.nk - length_;
    cache_ = std::make_unique<KeyValueCache<T>>(left);
    for (const Index j : kept) cache_->add(row_block(prompt_.K, j, 1), row_block(prompt_.V, j, 1));
    prompt_ = {};
  }
  void add(const Head<T>& token) {
    cache_->add(token.K, token.V);
    if (!evicted_) {
      prompt_.Q.row(came_) = token.Q.row(0);
      prompt_.K.row(came_) = token.K.row(0);
      prompt_.V.row(came_) = token.V.row(0);
    }
    ++came_;
  }

  Shape shape_;
  Index length_;  // of the prompt
  Keep keep_;
  HeadData<T> prompt_;  // until tokens are evicted
  std::unique_ptr<KeyValueCache<T>> cache_;
  Index came_ = 0;
  bool evicted_ = false;
};

template <class T>
class Evict final : public HeadPattern<T> {
 public:
  explicit Evict(const Draw& draw)
      : params_(draw.params),
        score_(score_of(draw.params)),
        keep_(draw.params.integer("keep")),
        protect_(draw.params.integer("protect")),
        prompt_(draw.params.integer("prompt")) {
    if (!score_.draw) return;
    const auto* given = draw.injected("uniforms", draw.shape.nk, 1);
    drawn_ = given ? *given : score_.draw(draw);
  }

  Tensors state() const override { return score_.draw ? Tensors{{"uniforms", drawn_}} : Tensors{}; }

  std::unique_ptr<Decoder<T>> decoder(const Shape& shape) const override {
    if (prompt_ == 0) return nullptr;
    return std::make_unique<PromptDecoder<T>>(shape, prompt_, [this](const Head<T>& prompt, Context& context) {
      return kept_of(context, prompt, {.causal = true}, prompt.K.rows());
    });
  }

 private:
  std::unique_ptr<const SparsePattern> pattern_of(const Head<T>& head, Mask mask, Context& context) const override {
    const Index nq = head.Q.rows(), queries = prompt_ > 0 ? std::clamp<Index>(prompt_ - mask.offset, 0, nq) : nq;
    const Index keys = queries > 0 ? mask.visible(queries - 1, head.K.rows()) : 0;
    if (prompt_ == 0) return std::make_unique<KeptAndOwn>(kept_of(context, head, mask, keys), head.K.rows());
    const Head<T> prompt{row_block(head.Q, 0, queries), head.K, head.V};
    return std::make_unique<KeptAndLater>(queries < nq ? kept_of(context, prompt, mask, keys) : std::vector<Index>(),
                                          prompt_);
  }

  // Of the first `keys` keys, which the last query sees.
  std::vector<Index> kept_of(Context& context, const Head<T>& head, Mask mask, Index keys) const {
    std::vector<Index> kept(static_cast<size_t>(keys));
    std::iota(kept.begin(), kept.end(), Index(0));
    if (keys <= keep_) return kept;
    const std::vector<double> scores = scores_of(context, head, mask, keys);
    const Index nq = head.Q.rows(), last = std::min(score_.last_queries(params_), nq);
    const Index own = last > 0 ? std::clamp<Index>(nq - last + mask.offset, 0, keys) : keys;
    keep_largest(kept, keep_,
                 [&](Index j) { return std::tuple(j < protect_, j >= own, scores[static_cast<size_t>(j)]); });
    std::sort(kept.begin(), kept.end());
    return kept;
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
  Index keep_, protect_, prompt_;
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
                   Parameter::integer("protect", 0, "first keys that are kept before all others", 0),
                   Parameter::integer("prompt", 0,
                                      "first tokens, whose rows see all keys and of which later rows see those kept; "
                                      "0: all tokens are a prompt, and all rows see those kept",
                                      0)},
    .claims =
        [](const Params& params, const Shape& shape) {
          const bool values = score_of(params).reads_values, prompt = params.integer("prompt") > 0;
          std::string no_form;
          if (prompt && !shape.mask.causal) no_form = "tokens behind a prompt are decoded: it needs a causal mask";
          if (prompt && shape.mask.offset != 0) no_form = "the queries of the prompt are not the first of those given";
          return Claims{.row_stochastic = true,
                        .non_negative = true,
                        .no_form = no_form,
                        .causal_exact = prompt,
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
          const Index prompt = params.integer("prompt") > 0 ? std::min(params.integer("prompt"), shape.nk) : shape.nk;
          const double n = static_cast<double>(prompt), channels = static_cast<double>(shape.d + shape.dv);
          const double share = std::min(1.0, static_cast<double>(params.integer("keep")) / n);
          double pairs = 0;
          bool evicts = share < 1;
          if (params.integer("prompt") > 0) {
            const auto later = static_cast<double>(shape.nk - prompt);
            evicts &= later > 0;
            pairs = n * (n + 1) / 2 + later * (share * n + (later + 1) / 2);
          } else {
            pairs = share * sum_over_blocks(shape, [](Index seen) { return seen; });
            if (evicts) pairs += (1 - share) * static_cast<double>(shape.nq);
          }
          Shape of_prompt = shape;
          of_prompt.nq = std::min(shape.nq, prompt);
          of_prompt.nk = prompt;
          const Work scores = evicts ? score_of(params).work(params, of_prompt) : Work{};
          return Work{.flops = scores.flops + 2 * pairs * channels, .exps = scores.exps + pairs};
        },
    .check = [](const Params& params) { score_of(params).check(params); },
}));

}  // namespace
}  // namespace attnbench
