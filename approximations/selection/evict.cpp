// Eviction: one set of keys for all rows, chosen once by a score of each key. Row i sees the kept keys before it and
// its own key, as in decoding, where the token's own key is in the cache. methods.md U
//   snapkv    mean softmax weight of the last `rows` queries, averaged over `pool` neighbouring keys; the keys of these
//             queries come first. Li et al. 2024, arXiv:2404.14469
//   tova      the weight of the last query, whose key comes first: snapkv of one query without neighbours. Oren et al.
//             2024, arXiv:2401.06104
//   knorm     -|k|: keys of small norm get most weight. Devoto et al. 2024, arXiv:2406.11430
//   keydiff   -cos(k, mean of unit keys). Park et al. 2025, arXiv:2504.15364
//   leverage  x (X^T X + 0.01 I)^-1 x^T, X the unscaled keys less their mean. Chari and Van Durme 2025, 2507.08143
//   random    uniform numbers: the null of all scores
// The first `keep` keys in the order of the score are kept (ties: the first). A score may depend on later tokens: this
// prepares a prompt. As in the authors' code, the neighbours of snapkv beyond the ends count as 0.
#include <cmath>
#include <numeric>

#include "approximations/selection/chosen_keys.hpp"
#include "approximations/selection/head_pattern.hpp"
#include "harness/linalg/factorisations.hpp"
#include "harness/linalg/rows.hpp"
#include "harness/random/uniform_numbers.hpp"

namespace attnbench {
namespace {

constexpr double ridge = 0.01;  // of the unscaled keys

struct Settings {
  std::string score;
  Index keep, rows, pool;
};

Settings settings_of(const Params& params) {
  Settings settings{.score = params.text("score"),
                    .keep = params.integer("keep"),
                    .rows = params.integer("rows"),
                    .pool = params.integer("pool")};
  if (settings.score == "tova") settings.rows = settings.pool = 1;
  return settings;
}
bool looks_at_queries(const Settings& settings) { return settings.score == "snapkv" || settings.score == "tova"; }

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

// Scores of the rows of K, and which of them come before all others.
struct Scores {
  std::vector<double> of_key;
  Index first_window = 0;  // keys from here on are those of the queries that were asked
};

template <class T>
std::vector<double> minus_norms(const In<T>& K) {
  std::vector<double> scores;
  for (Index j = 0; j < K.rows(); ++j) scores.push_back(-K.row(j).template cast<double>().norm());
  return scores;
}

template <class T>
std::vector<double> differences(const In<T>& K) {
  const auto unit = [&](Index j) {
    Eigen::RowVectorXd x = K.row(j).template cast<double>();
    if (const double length = x.norm(); length > 0) x /= length;
    return x;
  };
  Eigen::RowVectorXd sum = Eigen::RowVectorXd::Zero(K.cols());
  for (Index j = 0; j < K.rows(); ++j) sum += unit(j);
  std::vector<double> scores;  // times the length of the sum, which all have in common
  for (Index j = 0; j < K.rows(); ++j) scores.push_back(-unit(j).dot(sum));
  return scores;
}

template <class T>
std::vector<double> leverages(Context& context, const In<T>& K) {
  const Index d = K.cols();
  Matrix<double> X = K.template cast<double>();
  const Eigen::RowVectorXd mean = X.colwise().mean();
  X.rowwise() -= mean;
  Matrix<double> G = ridge / std::sqrt(static_cast<double>(d)) * Matrix<double>::Identity(d, d), products(X.rows(), d);
  transposed_multiply_add<double>(context, X, X, G);
  multiply<double>(context, X, inverse(G), products);
  std::vector<double> scores;
  for (Index j = 0; j < X.rows(); ++j) scores.push_back(X.row(j).dot(products.row(j)));
  return scores;
}

template <class T>
class Evict final : public HeadPattern<T> {
 public:
  explicit Evict(const Draw& draw) : settings_(settings_of(draw.params)) {
    if (settings_.score != "random") return;
    if (const auto* given = draw.injected("uniforms", draw.shape.nk, 1)) {
      uniforms_ = *given;
      return;
    }
    Generator generator = draw.streams.stream("evict", draw.head, draw.replicate);
    uniforms_ = uniform_numbers(generator, draw.shape.nk, 1);
  }

  Tensors state() const override { return settings_.score == "random" ? Tensors{{"uniforms", uniforms_}} : Tensors{}; }

 private:
  std::unique_ptr<const SparsePattern> pattern_of(const Head<T>& head, Mask mask, Context& context) const override {
    const Index nq = head.Q.rows(), keys = nq > 0 ? mask.visible(nq - 1, head.K.rows()) : 0;
    std::vector<Index> kept(static_cast<size_t>(keys));
    std::iota(kept.begin(), kept.end(), Index(0));
    if (keys > settings_.keep) {
      const Scores scores = scores_of(context, head, mask, keys);
      keep_largest(kept, settings_.keep,
                   [&](Index j) { return std::pair(j >= scores.first_window, scores.of_key[static_cast<size_t>(j)]); });
    }
    return std::make_unique<KeptAndOwn>(std::move(kept), head.K.rows());
  }

  // Of the first `keys` keys.
  Scores scores_of(Context& context, const Head<T>& head, Mask mask, Index keys) const {
    if (looks_at_queries(settings_)) return observed(context, head, mask, keys);
    Scores scores{.of_key = {}, .first_window = keys};
    const In<T> K = row_block(head.K, 0, keys);
    if (settings_.score == "knorm") scores.of_key = minus_norms<T>(K);
    if (settings_.score == "keydiff") scores.of_key = differences<T>(K);
    if (settings_.score == "leverage") scores.of_key = leverages<T>(context, K);
    if (settings_.score == "random") scores.of_key.assign(uniforms_.data(), uniforms_.data() + keys);
    return scores;
  }

  Scores observed(Context& context, const Head<T>& head, Mask mask, Index keys) const {
    const Index nq = head.Q.rows(), count = std::min(settings_.rows, nq), first = nq - count;
    Matrix<T> weights(count, keys);
    multiply_transposed<T>(context, row_block(head.Q, first, count), row_block(head.K, 0, keys), weights);
    std::vector<double> sums(static_cast<size_t>(keys), 0);
    for (Index r = 0; r < count; ++r) {
      softmax_within<T>(context, weights, r, 0, mask.visible(first + r, keys));
      for (Index j = 0; j < keys; ++j) sums[static_cast<size_t>(j)] += static_cast<double>(weights(r, j));
    }
    Scores scores{.of_key = std::vector<double>(sums.size(), 0),
                  .first_window = std::clamp<Index>(first + mask.offset, 0, keys)};
    const Index side = settings_.pool / 2;
    for (Index j = 0; j < scores.first_window; ++j)
      for (Index l = std::max<Index>(0, j - side); l <= std::min(scores.first_window - 1, j + side); ++l)
        scores.of_key[static_cast<size_t>(j)] += sums[static_cast<size_t>(l)];
    return scores;
  }

  Settings settings_;
  Matrix<double> uniforms_;  // nk x 1, if the score is random
};

const bool registered = add(method<Evict>({
    .text =
        {.name = "evict",
         .printed = "Eviction",
         .summary = "softmax over one set of keys for all rows, those of the largest scores, and the row's own key",
         .formula = "A_ij = exp(q_i.k_j) / sum over S and i of exp(q_i.k_l), S the keep keys of largest score",
         .reference = "Li et al. 2024 (SnapKV), arXiv:2404.14469; Oren et al. 2024 (TOVA), arXiv:2401.06104; Devoto "
                      "et al. 2024, arXiv:2406.11430; Park et al. 2025 (KeyDiff), arXiv:2504.15364; Chari and Van "
                      "Durme 2025, arXiv:2507.08143",
         .cost = "O(n keep (d + dv)) time; scores of snapkv O(rows n d), of leverage O(n d^2), of others O(n d); O(n "
                 "(rows + d)) memory",
         .family = "selection",
         .departure = "one head: TOVA averages its weights over the heads of a layer; leverages are exact, and of the "
                      "keys as given; the largest scores are those of one prompt, tova does not evict step by step",
         .aliases = {"snapkv", "kv-eviction"}},
    .parameters = {Parameter::integer("keep", 128, "keys kept", 1).as_budget(),
                   Parameter::choice("score", "snapkv",
                                     "of a key: weight that the last queries give it, the last query alone, "
                                     "small norm, distance from the mean direction, leverage, or a random number",
                                     {"snapkv", "tova", "knorm", "keydiff", "leverage", "random"}),
                   Parameter::integer("rows", 64, "last queries whose weights are the score of snapkv", 1),
                   Parameter::integer("pool", 5, "neighbouring keys whose weights snapkv averages, an odd number", 1)},
    .claims =
        [](const Params&, const Shape&) {
          return Claims{.row_stochastic = true, .non_negative = true, .exact_when = "keep=1000000000"};
        },
    .memory =
        [](const Params& params, const Shape& shape) {
          const Settings settings = settings_of(params);
          const double nk = static_cast<double>(shape.nk), bytes = bytes_of(shape.precision);
          const auto d = static_cast<double>(shape.d);
          double scores = 0;
          if (looks_at_queries(settings)) scores = static_cast<double>(std::min(settings.rows, shape.nq)) * nk * bytes;
          if (settings.score == "leverage") scores = 16 * nk * d;
          return scores + 32 * nk + 2 * static_cast<double>(shape.nq) * bytes;
        },
    .cost =
        [](const Params& params, const Shape& shape) {
          const Settings settings = settings_of(params);
          const double nk = static_cast<double>(shape.nk), d = static_cast<double>(shape.d);
          const double share = std::min(1.0, static_cast<double>(settings.keep) / nk);
          const double kept = share * sum_over_blocks(shape, [](Index seen) { return seen; });
          const double own = share < 1 ? (1 - share) * static_cast<double>(shape.nq) : 0;
          const bool scored = share < 1;
          const double observed =
              scored && looks_at_queries(settings) ? static_cast<double>(std::min(settings.rows, shape.nq)) * nk : 0;
          const double leverage = scored && settings.score == "leverage" ? 4 * nk * d * d : 0;
          return Work{.flops = 2 * observed * d + leverage + 2 * (kept + own) * (d + static_cast<double>(shape.dv)),
                      .exps = observed + kept + own};
        },
    .check =
        [](const Params& params) {
          if (params.integer("pool") % 2 == 0)
            throw Misuse("evict: pool=" + std::to_string(params.integer("pool")) +
                         " is even, so that it has no middle; give an odd number, for example evict:pool=5");
        },
}));

}  // namespace
}  // namespace attnbench
