// Eviction: one set of keys for all rows, chosen once by a score of each key. Row i sees the kept keys before it and
// its own key, as in decoding, where the token's own key is in the cache. methods.md U
// The first `keep` keys are kept of those at the beginning that `protect` names, then of those at the positions of the
// queries that gave the score, then in the order of the score (ties: the first key). A score may depend on later
// tokens: this prepares a prompt.
// prompt=P: the first P tokens are the prompt. Its own rows see all keys, as a system computes them before it evicts;
// later rows see the kept keys of the prompt and all tokens after it. No row depends on later tokens then, and a
// decoder holds keep + t - P tokens at position t.
// allocation: how the budget of heads keep tokens each is divided. uniform: evenly. pyramid (Cai et al. 2024,
// arXiv:2406.02069): by layer, linearly from keep (2 - 1/20) in the first to keep / 20 in the last. adaptive (Feng et
// al. 2024, arXiv:2407.11550): each head of a layer keeps its keep / 5 first keys in the order above, at least one, and
// the rest of the budget goes to the first keys of all heads together, in that order (ties: the first head).
// merge=true: each key of the prompt that is dropped joins the kept key of largest cosine (ties: the first). Later rows
// see the mean key and the mean value of the n_c members, with the logit q.k + log n_c (Bolya et al. 2022,
// arXiv:2210.09461, section 3.2, "proportional attention"; merging of dropped keys: Wan et al. 2024, arXiv:2406.13035).
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include "approximations/selection/chosen_keys.hpp"
#include "approximations/selection/head_pattern.hpp"
#include "approximations/softmax/key_value_cache.hpp"
#include "harness/core/key_score.hpp"
#include "harness/core/shared_budget.hpp"

namespace attnbench::evict_method {
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

// Every row sees all keys of its mask.
class Everything final : public SparsePattern {
 public:
  void keys(size_t, Index, Index visible, std::vector<IndexRun>& runs) const override { runs.push_back({0, visible}); }
};

// The keys that are left of a prompt: those kept, or the means of each kept key and those that joined it.
template <class T>
struct Left {
  Left(const Head<T>& prompt, const std::vector<Index>& kept, bool merge)
      : members(kept.size()), K(std::ssize(kept), prompt.K.cols()), V(std::ssize(kept), prompt.V.cols()) {
    for (size_t c = 0; c < kept.size(); ++c) members[c].push_back(kept[c]);
    if (merge) join(prompt.K, kept);
    for (Index c = 0; c < K.rows(); ++c) {
      const auto& all = members[static_cast<size_t>(c)];
      Eigen::RowVectorXd key = Eigen::RowVectorXd::Zero(K.cols()), value = Eigen::RowVectorXd::Zero(V.cols());
      for (const Index j : all) {
        key += prompt.K.row(j).template cast<double>();
        value += prompt.V.row(j).template cast<double>();
      }
      K.row(c) = (key / static_cast<double>(all.size())).template cast<T>();
      V.row(c) = (value / static_cast<double>(all.size())).template cast<T>();
    }
  }

  std::vector<std::vector<Index>> members;  // of each kept key, itself first
  Matrix<T> K, V;                           // kept x d, kept x dv

 private:
  // Decided in double for both scalar types: a rounding error would join another key.
  void join(const In<T>& keys, const std::vector<Index>& kept) {
    const auto unit = [&](Index j) -> Eigen::RowVectorXd {
      const Eigen::RowVectorXd key = keys.row(j).template cast<double>();
      return key / std::max(key.norm(), std::numeric_limits<double>::min());
    };
    Matrix<double> units(std::ssize(kept), keys.cols());
    for (Index c = 0; c < units.rows(); ++c) units.row(c) = unit(kept[static_cast<size_t>(c)]);
    for (Index j = 0; j < keys.rows() && !kept.empty(); ++j) {
      if (std::binary_search(kept.begin(), kept.end(), j)) continue;
      Index nearest = 0;
      (units * unit(j).transpose()).maxCoeff(&nearest);
      members[static_cast<size_t>(nearest)].push_back(j);
    }
  }
};

// Tokens with one more coordinate: 1 of a query, and of a key the logarithm of its number of members, 0 for one token.
template <class T>
HeadData<T> with_members(const Left<T>& left, const Head<T>& later) {
  const Index d = later.Q.cols(), kept = left.K.rows(), keys = later.K.rows();
  HeadData<T> head{Matrix<T>::Ones(later.Q.rows(), d + 1), Matrix<T>::Zero(kept + keys, d + 1),
                   Matrix<T>(kept + keys, later.V.cols())};
  head.Q.leftCols(d) = later.Q;
  head.K.topLeftCorner(kept, d) = left.K;
  head.K.bottomLeftCorner(keys, d) = later.K;
  for (Index c = 0; c < kept; ++c)
    head.K(c, d) = static_cast<T>(std::log(static_cast<double>(left.members[static_cast<size_t>(c)].size())));
  head.V.topRows(kept) = left.V;
  head.V.bottomRows(keys) = later.V;
  return head;
}

// Holds all tokens of a prompt, then what is left of them, and all that come behind it.
template <class T>
class PromptDecoder final : public Decoder<T> {
 public:
  // The keys that are kept of a prompt, ascending.
  using Keep = std::function<std::vector<Index>(const Head<T>& prompt, Context&)>;

  PromptDecoder(const Shape& shape, Index prompt, bool merge, Keep keep)
      : shape_(shape),
        length_(prompt),
        merge_(merge),
        keep_(std::move(keep)),
        cache_(std::make_unique<KeyValueCache<T>>(shape)) {
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
    cache_->read(merge_ && evicted_ ? In<T>(as_one(token).Q) : token.Q, context, out);
  }
  // The copy of the prompt serves its queries, which an evicting system has at hand when it evicts.
  size_t bytes() const override { return cache_->bytes(); }

 private:
  // Evicts tokens of the prompt when the first token behind it comes.
  void make_room(Context& context) {
    if (evicted_ || came_ < length_) return;
    evicted_ = true;
    const std::vector<Index> kept = keep_(prompt_.view(), context);
    Shape shape = shape_;
    shape.d += merge_ ? 1 : 0;
    shape.nk = std::ssize(kept) + shape_.nk - length_;
    cache_ = std::make_unique<KeyValueCache<T>>(shape);
    const Left<T> left(prompt_.view(), kept, merge_);
    const Head<T> none{row_block(prompt_.Q, 0, 0), row_block(prompt_.K, 0, 0), row_block(prompt_.V, 0, 0)};
    const HeadData<T> merged = merge_ ? with_members(left, none) : HeadData<T>{};
    const In<T> K = merge_ ? In<T>(merged.K) : In<T>(left.K);
    for (Index c = 0; c < K.rows(); ++c) cache_->add(row_block(K, c, 1), row_block(left.V, c, 1));
    prompt_ = {};
  }
  // A token behind the prompt, with the coordinate of its one member.
  HeadData<T> as_one(const Head<T>& token) const {
    const Matrix<T> none(0, shape_.d);
    return with_members(Left<T>({none, none, Matrix<T>(0, shape_.dv)}, {}, false), token);
  }
  void add(const Head<T>& token) {
    cache_->add(merge_ && evicted_ ? In<T>(as_one(token).K) : token.K, token.V);
    if (!evicted_) {
      prompt_.Q.row(came_) = token.Q.row(0);
      prompt_.K.row(came_) = token.K.row(0);
      prompt_.V.row(came_) = token.V.row(0);
    }
    ++came_;
  }

  Shape shape_;
  Index length_;  // of the prompt
  bool merge_;
  Keep keep_;
  HeadData<T> prompt_;  // until tokens are evicted
  std::unique_ptr<KeyValueCache<T>> cache_;
  Index came_ = 0;
  bool evicted_ = false;
};

// Of a layer, for heads that keep `keep` tokens each in the mean. As in the paper's library, the last layer keeps a
// twentieth.
Index kept_by_pyramid(Index keep, Index layer, Index layers) {
  if (layers < 2) return keep;
  const double mean = static_cast<double>(keep), last = mean / 20, first = 2 * mean - last;
  const double share = static_cast<double>(layer) / static_cast<double>(layers - 1);
  return std::max<Index>(1, std::lround(first + share * (last - first)));
}

template <class T>
class Evict final : public HeadPattern<T>, public SharesBudget<T> {
 public:
  explicit Evict(const Draw& draw)
      : params_(draw.params),
        score_(score_of(draw.params)),
        keep_(draw.params.text("allocation") == "pyramid"
                  ? kept_by_pyramid(draw.params.integer("keep"), draw.layer, draw.layers)
                  : draw.params.integer("keep")),
        protect_(draw.params.integer("protect")),
        prompt_(draw.params.integer("prompt")),
        merge_(draw.params.flag("merge")) {
    if (!score_.draw) return;
    const auto* given = draw.injected("uniforms", draw.shape.nk, 1);
    drawn_ = given ? *given : score_.draw(draw);
  }

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    const Index queries = merge_ ? queries_of_prompt(head, mask) : head.Q.rows();
    const Head<T> first{row_block(head.Q, 0, queries), head.K, head.V};
    sparse_softmax<T>(*pattern_of(first, mask, context), first, mask, context, row_block(out, 0, queries));
    if (queries == head.Q.rows()) return;
    const auto [left, later] = later_of(head, mask, queries, context);
    sparse_softmax<T>(Everything(), later.view(), {.causal = true, .offset = left.K.rows()}, context,
                      row_block(out, queries, later.Q.rows()));
  }
  // Every key of a prompt has a part in a mean.
  const Pattern<T>* pattern() const override { return merge_ ? nullptr : this; }

  void attention_rows(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> A) const override {
    const Index queries = merge_ ? queries_of_prompt(head, mask) : head.Q.rows();
    const Index of_prompt = std::clamp<Index>(queries - first, 0, A.rows());
    if (of_prompt > 0) {
      const Head<T> prompt{row_block(head.Q, 0, queries), head.K, head.V};
      sparse_softmax_rows<T>(*pattern_of(prompt, mask, context), prompt, mask, first, context,
                             row_block(A, 0, of_prompt));
    }
    if (of_prompt == A.rows()) return;
    const auto [left, later] = later_of(head, mask, queries, context);
    const Index kept = left.K.rows();
    Matrix<T> weights(A.rows() - of_prompt, later.K.rows());
    sparse_softmax_rows<T>(Everything(), later.view(), {.causal = true, .offset = kept},
                           std::max(first, queries) - queries, context, weights);
    A.bottomRows(weights.rows()).setZero();
    for (Index r = 0; r < weights.rows(); ++r) {
      for (Index c = 0; c < kept; ++c) {
        const auto& members = left.members[static_cast<size_t>(c)];
        for (const Index j : members) A(of_prompt + r, j) = weights(r, c) / static_cast<T>(members.size());
      }
      const Index later_keys = weights.cols() - kept;
      if (later_keys > 0) A.row(of_prompt + r).segment(prompt_, later_keys) = weights.row(r).tail(later_keys);
    }
  }

  Tensors state() const override { return score_.draw ? Tensors{{"uniforms", drawn_}} : Tensors{}; }

  std::vector<std::unique_ptr<Approximation<T>>> divided(std::span<const std::unique_ptr<Approximation<T>>> instances,
                                                         std::span<const HeadData<T>> heads, Mask mask,
                                                         Context& context) const override {
    const auto is_of_this_spec = [&](const auto& instance) {
      const auto* evict = dynamic_cast<const Evict*>(instance.get());
      return evict && evict->params_.spec() == params_.spec();
    };
    if (params_.text("allocation") != "adaptive" || !std::all_of(instances.begin(), instances.end(), is_of_this_spec))
      return {};
    std::vector<std::unique_ptr<Approximation<T>>> divided;
    std::vector<std::tuple<bool, Rank, size_t>> candidates;  // is it safe, its rank, and its head
    const Index safe = std::max<Index>(1, keep_ / 5);
    for (size_t h = 0; h < instances.size(); ++h) {
      divided.push_back(std::make_unique<Evict>(dynamic_cast<const Evict&>(*instances[h])));
      const auto& own = dynamic_cast<const Evict&>(*divided.back());
      std::vector<Rank> ranks = own.ranks_of_prompt(heads[h].view(), mask, context);
      std::sort(ranks.begin(), ranks.end(), std::greater<>());
      for (size_t r = 0; r < ranks.size(); ++r)
        candidates.emplace_back(static_cast<Index>(r) < safe, ranks[r], instances.size() - h);
    }
    const size_t budget = std::min(candidates.size(), static_cast<size_t>(keep_) * instances.size());
    std::partial_sort(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(budget), candidates.end(),
                      std::greater<>());
    std::vector<Index> kept(instances.size(), 0);
    for (size_t c = 0; c < budget; ++c) ++kept[instances.size() - std::get<2>(candidates[c])];
    for (size_t h = 0; h < instances.size(); ++h) dynamic_cast<Evict&>(*divided[h]).keep_ = kept[h];
    return divided;
  }

  std::unique_ptr<Decoder<T>> decoder(const Shape& shape) const override {
    if (prompt_ == 0) return nullptr;
    return std::make_unique<PromptDecoder<T>>(shape, prompt_, merge_, [this](const Head<T>& prompt, Context& context) {
      return kept_of(context, prompt, {.causal = true}, prompt.K.rows());
    });
  }

 private:
  Index queries_of_prompt(const Head<T>& head, Mask mask) const {
    return prompt_ > 0 ? std::clamp<Index>(prompt_ - mask.offset, 0, head.Q.rows()) : head.Q.rows();
  }

  // The merged rest of a prompt with so many queries, and the tokens behind it.
  struct Later {
    Left<T> left;
    HeadData<T> head;
  };
  Later later_of(const Head<T>& head, Mask mask, Index queries, Context& context) const {
    const Index seen = mask.visible(head.Q.rows() - 1, head.K.rows()), keys = std::min(prompt_, seen);
    const Head<T> prompt{row_block(head.Q, 0, queries), row_block(head.K, 0, keys), row_block(head.V, 0, keys)};
    Left<T> left(prompt, kept_of(context, prompt, mask, keys), true);
    HeadData<T> later =
        with_members(left, {row_block(head.Q, queries, head.Q.rows() - queries), row_block(head.K, keys, seen - keys),
                            row_block(head.V, keys, seen - keys)});
    return {std::move(left), std::move(later)};
  }

  std::unique_ptr<const SparsePattern> pattern_of(const Head<T>& head, Mask mask, Context& context) const override {
    const Index nq = head.Q.rows(), queries = queries_of_prompt(head, mask);
    const Index keys = queries > 0 ? mask.visible(queries - 1, head.K.rows()) : 0;
    if (prompt_ == 0) return std::make_unique<KeptAndOwn>(kept_of(context, head, mask, keys), head.K.rows());
    const Head<T> prompt{row_block(head.Q, 0, queries), head.K, head.V};
    return std::make_unique<KeptAndLater>(queries < nq ? kept_of(context, prompt, mask, keys) : std::vector<Index>(),
                                          prompt_);
  }

  using Rank = std::tuple<bool, bool, double>;  // is it protected, is it at a query of the score, its score

  // Of the first `keys` keys, which the last query sees.
  std::vector<Index> kept_of(Context& context, const Head<T>& head, Mask mask, Index keys) const {
    std::vector<Index> kept(static_cast<size_t>(keys));
    std::iota(kept.begin(), kept.end(), Index(0));
    if (keys <= keep_) return kept;
    const std::vector<Rank> ranks = ranks_of(context, head, mask, keys);
    keep_largest(kept, keep_, [&](Index j) { return ranks[static_cast<size_t>(j)]; });
    std::sort(kept.begin(), kept.end());
    return kept;
  }
  std::vector<Rank> ranks_of(Context& context, const Head<T>& head, Mask mask, Index keys) const {
    const std::vector<double> scores = scores_of(context, head, mask, keys);
    const Index nq = head.Q.rows(), last = std::min(score_.last_queries(params_), nq);
    const Index own = last > 0 ? std::clamp<Index>(nq - last + mask.offset, 0, keys) : keys;
    std::vector<Rank> ranks;
    for (Index j = 0; j < keys; ++j) ranks.emplace_back(j < protect_, j >= own, scores[static_cast<size_t>(j)]);
    return ranks;
  }
  // Of the keys among which those of this head are chosen.
  std::vector<Rank> ranks_of_prompt(const Head<T>& head, Mask mask, Context& context) const {
    const Index queries = queries_of_prompt(head, mask);
    if (queries == 0) return {};
    const Index seen = mask.visible(queries - 1, head.K.rows()), keys = prompt_ > 0 ? std::min(prompt_, seen) : seen;
    return ranks_of(context, {row_block(head.Q, 0, queries), head.K, head.V}, mask, keys);
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
  bool merge_;
  Matrix<double> drawn_;  // nk x 1, if the score draws numbers
};

// The tokens that scores are computed from.
Shape prompt_of(const Params& params, Shape shape) {
  const Index prompt = params.integer("prompt");
  if (prompt == 0) return shape;
  shape.nq = std::min(shape.nq, prompt);
  shape.nk = std::min(shape.nk, prompt);
  return shape;
}

const bool registered = add(method<Evict>({
    .text =
        {.name = "evict",
         .printed = "Eviction",
         .summary = "softmax over one set of keys for all rows, those of the largest scores, and the row's own key",
         .formula = "A_ij = exp(q_i.k_j) / sum over S and i of exp(q_i.k_l), S the keep keys of largest score",
         .reference =
             "Li et al. 2024 (SnapKV), arXiv:2404.14469; Oren et al. 2024 (TOVA), arXiv:2401.06104; Devoto "
             "et al. 2024, arXiv:2406.11430; Park et al. 2025 (KeyDiff), arXiv:2504.15364; Chari and Van "
             "Durme 2025, arXiv:2507.08143; Devoto et al. 2025, arXiv:2510.00636; Cai et al. 2024 (PyramidKV), "
             "arXiv:2406.02069; Feng et al. 2024 (Ada-KV), arXiv:2407.11550",
         .cost =
             "O(n keep (d + dv)) time, and that of the score; O(n (d + dv)) memory in float, where the score is of a "
             "copy in double",
         .family = "selection",
         .departure = "the keys of a head are chosen once, for a prompt; some of the authors' systems also evict while "
                      "they decode",
         .aliases = {"snapkv", "kv-eviction"}},
    .parameters = {Parameter::integer("keep", 128, "keys kept", 1).as_budget(),
                   Parameter::entry("score", "snapkv", "of a key; keys of large score are kept", "key-scores"),
                   Parameter::integer("protect", 0, "first keys that are kept before all others", 0),
                   Parameter::integer("prompt", 0,
                                      "first tokens, whose rows see all keys and of which later rows see those kept; "
                                      "0: all tokens are a prompt, and all rows see those kept",
                                      0),
                   Parameter::choice("allocation", "uniform",
                                     "of the budget, keep tokens a head: evenly; by layer, fewer in later ones; or to "
                                     "the largest scores of all heads of a layer, a fifth of keep to each",
                                     {"uniform", "pyramid", "adaptive"}),
                   Parameter::flag("merge", false,
                                   "dropped keys of a prompt join the kept ones in means, with the weight of their "
                                   "number")},
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
                        .scales_with_V = values,
                        .no_attention_matrix = values ? "the values decide which keys are kept" : "",
                        .exact_when = "keep=1000000000"};
        },
    .memory =
        [](const Params& params, const Shape& shape) {
          const Shape prompt = prompt_of(params, shape);
          const double n = static_cast<double>(prompt.nk), d = static_cast<double>(shape.d);
          const double nk = static_cast<double>(shape.nk), nq = static_cast<double>(shape.nq);
          const double channels = static_cast<double>(shape.d + shape.dv), bytes = bytes_of(shape.precision);
          const double copies = shape.precision == Precision::f32
                                    ? sizeof(double) * (n * channels + static_cast<double>(prompt.nq) * d)
                                    : 0;
          const double merged = params.flag("merge") ? (nq * (d + 1) + nk * (channels + 1)) * bytes : 0;
          return copies + merged + score_of(params).memory(params, prompt) + 32 * nk + 2 * nq * bytes;
        },
    .cost =
        [](const Params& params, const Shape& shape) {
          const Shape prompt = prompt_of(params, shape);
          const double n = static_cast<double>(prompt.nk), channels = static_cast<double>(shape.d + shape.dv);
          const double share = std::min(1.0, static_cast<double>(params.integer("keep")) / n);
          double pairs = 0;
          bool evicts = share < 1;
          if (params.integer("prompt") > 0) {
            const auto later = static_cast<double>(shape.nk - prompt.nk);
            evicts &= later > 0;
            pairs = n * (n + 1) / 2 + later * (share * n + (later + 1) / 2);
          } else {
            pairs = share * sum_over_blocks(shape, [](Index seen) { return seen; });
            if (evicts) pairs += (1 - share) * static_cast<double>(shape.nq);
          }
          const Work scores = evicts ? score_of(params).work(params, prompt) : Work{};
          return Work{.flops = scores.flops + 2 * pairs * channels, .exps = scores.exps + pairs};
        },
    .check =
        [](const Params& params) {
          score_of(params).check(params);
          if (params.flag("merge") && params.integer("prompt") == 0)
            throw Misuse(
                params.spec() +
                ": means of keys hold later tokens, which rows of a prompt must not see; expected the length of "
                "a prompt beside merge=true, as in evict:prompt=512,merge=true");
        },
    .caveats =
        [](const Params& params, const Shape&) {
          const std::string& allocation = params.text("allocation");
          if (allocation == "uniform") return std::vector<std::string>();
          return std::vector<std::string>{
              allocation == "pyramid"
                  ? "evict: allocation=pyramid takes effect in the layers of a model (model-loss, depth); a head by "
                    "itself keeps `keep` tokens"
                  : "evict: allocation=adaptive takes effect where all heads of a layer are there (model-loss, and "
                    "attend with several heads) and evict is their method, not part of another one; a head by itself "
                    "keeps `keep` tokens"};
        },
}));

}  // namespace
}  // namespace attnbench::evict_method
