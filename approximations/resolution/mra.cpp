// MRA-2: blocks of the attention matrix at two resolutions. Zeng et al. 2022, arXiv:2207.10284.
//   queries and keys are cut into blocks of b tokens with the means mu, n_B the keys of block B
//   weight of key j of block B in row i of block A: exp(q_i.k_j) if (A, B) is one of the `refine` pairs of blocks with
//   the largest mu_A.mu_B, else exp(mu_A.mu_B); rows are then normalised                                   methods.md T
// By Jensen's inequality n_A n_B exp(mu_A.mu_B) is never above the weight that exp(q.k) gives the pair of blocks. Exact
// if q and k are constant on the blocks, and if all pairs are refined. Of equal products the first pair is taken, row
// after row. The last block may be shorter. Padded keys are left out; queries at padded positions make blocks of their
// own, which are refined last. epsilon: the authors' module adds 1e-6 to the sum of a row over its largest weight.
// No causal form: a mean holds later tokens. Means and mu_A.mu_B are in double for both scalar types.
// O((n/b)^2 (d + dv) + n d + refine b^2 (d + dv)) time, O((n/b)^2 + n/b (d + dv)) memory.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "approximations/low-rank/unpadded_queries.hpp"
#include "harness/core/bounds.hpp"
#include "harness/linalg/per_row.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench::mra_method {
namespace {

struct Block {
  Index begin, count;
};

void cut(Index begin, Index end, Index length, std::vector<Block>& blocks) {
  for (Index b = begin; b < end; b += length) blocks.push_back({b, std::min(length, end - b)});
}

template <class T>
Matrix<double> means(const In<T>& X, const std::vector<Block>& blocks) {
  Matrix<double> all(std::ssize(blocks), X.cols());
  for (Index b = 0; b < all.rows(); ++b) {
    const auto [begin, count] = blocks[static_cast<size_t>(b)];
    all.row(b) = X.middleRows(begin, count).template cast<double>().colwise().mean();
  }
  return all;
}

// Both sides of a head in blocks.
template <class T>
struct Coarse {
  std::vector<Block> queries, keys;
  Matrix<double> logits;                    // mu_A.mu_B
  std::vector<std::vector<Index>> refined;  // of each block of queries: the exact blocks of keys, ascending
  Matrix<T> values;                         // means of the values, a row a block of keys
};

// Rows of one block of queries. Weights are over the sum of their row.
template <class T>
struct Weights {
  Matrix<T> exact;      // rows x keys of the refined blocks, one block after another
  Matrix<T> of_blocks;  // 1 x blocks: n_B exp(mu_A.mu_B) over the largest, 0 where refined
  PerRow<T> of_coarse;  // of each row, what its coarse weights are to be multiplied by
};

template <class T>
class Mra final : public Approximation<T>, public Rows<T>, public CoarseWeights<T> {
 public:
  explicit Mra(const Draw& draw)
      : block_(draw.params.integer("block")),
        refine_(draw.params.integer("refine")),
        epsilon_(static_cast<T>(draw.params.real("epsilon"))) {}

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    const Index keys = mask.visible(0, head.K.rows());
    if (keys == 0) return void(out.setZero());
    const Coarse<T> coarse = coarse_of(head, mask, keys, context);
    context.for_blocks(std::ssize(coarse.queries), 1, [&](Context& single, Index a, Index) {
      const auto [begin, count] = coarse.queries[static_cast<size_t>(a)];
      const auto weights = weights_of(head, coarse, a, begin, count, single);
      Matrix<T> of_blocks(1, out.cols());
      multiply<T>(single, weights.of_blocks, coarse.values, of_blocks);
      auto rows = row_block(out, begin, count);
      for (Index i = 0; i < count; ++i) rows.row(i) = weights.of_coarse[i] * of_blocks.row(0);
      Index place = 0;
      for (const Index b : coarse.refined[static_cast<size_t>(a)]) {
        const auto [first, width] = coarse.keys[static_cast<size_t>(b)];
        multiply_add<T>(single, columns<In<T>>(weights.exact, place, width), row_block(head.V, first, width), rows);
        place += width;
      }
    });
  }

  const Rows<T>* rows() const override { return this; }

  void attention_rows(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> A) const override {
    A.setZero();
    const Index keys = mask.visible(0, head.K.rows()), end = first + A.rows();
    if (keys == 0) return;
    const Coarse<T> coarse = coarse_of(head, mask, keys, context);
    for (Index a = 0; a < std::ssize(coarse.queries); ++a) {
      const auto of_block = coarse.queries[static_cast<size_t>(a)];
      const Index begin = std::max(first, of_block.begin),
                  count = std::min(end, of_block.begin + of_block.count) - begin;
      if (count <= 0) continue;
      const auto weights = weights_of(head, coarse, a, begin, count, context);
      for (Index b = 0; b < std::ssize(coarse.keys); ++b) {
        const auto [key, width] = coarse.keys[static_cast<size_t>(b)];
        const T of_key = weights.of_blocks(0, b) / static_cast<T>(width);
        for (Index i = 0; i < count; ++i)
          A.row(begin - first + i).segment(key, width).setConstant(weights.of_coarse[i] * of_key);
      }
      Index place = 0;
      for (const Index b : coarse.refined[static_cast<size_t>(a)]) {
        const auto [key, width] = coarse.keys[static_cast<size_t>(b)];
        A.middleRows(begin - first, count).middleCols(key, width) = weights.exact.middleCols(place, width);
        place += width;
      }
    }
  }

  std::vector<CoarseWeight> coarse_weights(const Head<T>& head, Mask mask, Context& context) const override {
    const Index keys = mask.visible(0, head.K.rows());
    std::vector<CoarseWeight> all;
    if (keys == 0) return all;
    const Coarse<T> coarse = coarse_of(head, mask, keys, context);
    for (size_t a = 0; a < coarse.queries.size(); ++a)
      for (size_t b = 0; b < coarse.keys.size(); ++b) {
        if (std::ranges::binary_search(coarse.refined[a], static_cast<Index>(b))) continue;
        const auto [row, rows] = coarse.queries[a];
        const auto [key, width] = coarse.keys[b];
        std::vector<Index> of_block(static_cast<size_t>(width));
        std::iota(of_block.begin(), of_block.end(), key);
        all.push_back({row, rows, std::move(of_block),
                       coarse.logits(static_cast<Index>(a), static_cast<Index>(b)) +
                           std::log(static_cast<double>(rows * width))});
      }
    return all;
  }

 private:
  template <class View, class Whole>
  static View columns(Whole& X, Index first, Index count) {
    return {X.data() + first, X.rows(), count, X.cols()};
  }

  Coarse<T> coarse_of(const Head<T>& head, Mask mask, Index keys, Context& context) const {
    Coarse<T> coarse;
    const Index unpadded = unpadded_queries(head.Q.rows(), mask);
    cut(0, unpadded, block_, coarse.queries);
    const Index chosen_first = std::ssize(coarse.queries);
    cut(unpadded, head.Q.rows(), block_, coarse.queries);
    cut(0, keys, block_, coarse.keys);
    coarse.logits.resize(std::ssize(coarse.queries), std::ssize(coarse.keys));
    multiply_transposed<double>(context, means(head.Q, coarse.queries), means(head.K, coarse.keys), coarse.logits);
    coarse.values = means(head.V, coarse.keys).template cast<T>();
    refine(chosen_first, coarse);
    return coarse;
  }

  // Pairs of the first `chosen_first` blocks of queries come before all others.
  void refine(Index chosen_first, Coarse<T>& coarse) const {
    const Index width = coarse.logits.cols(), total = coarse.logits.size(), count = std::min(refine_, total);
    std::vector<Index> pairs(static_cast<size_t>(total));
    std::iota(pairs.begin(), pairs.end(), Index(0));
    const auto comes_first = [&](Index a, Index b) {
      const bool a_late = a / width >= chosen_first, b_late = b / width >= chosen_first;
      if (a_late != b_late) return b_late;
      const double of_a = coarse.logits.data()[a], of_b = coarse.logits.data()[b];
      return of_a > of_b || (of_a == of_b && a < b);
    };
    if (count < total) std::nth_element(pairs.begin(), pairs.begin() + count, pairs.end(), comes_first);
    pairs.resize(static_cast<size_t>(count));
    std::sort(pairs.begin(), pairs.end());
    coarse.refined.resize(coarse.queries.size());
    for (const Index pair : pairs) coarse.refined[static_cast<size_t>(pair / width)].push_back(pair % width);
  }

  // Of rows [begin, begin + count), which lie in block a of the queries.
  Weights<T> weights_of(const Head<T>& head, const Coarse<T>& coarse, Index a, Index begin, Index count,
                        Context& context) const {
    const auto& refined = coarse.refined[static_cast<size_t>(a)];
    Index width = 0;
    for (const Index b : refined) width += coarse.keys[static_cast<size_t>(b)].count;
    Weights<T> weights{Matrix<T>(count, width), Matrix<T>(1, std::ssize(coarse.keys)), PerRow<T>(count)};
    for (Index b = 0; b < weights.of_blocks.cols(); ++b) {
      const double keys = static_cast<double>(coarse.keys[static_cast<size_t>(b)].count);
      weights.of_blocks(0, b) = static_cast<T>(coarse.logits(a, b) + std::log(keys));
    }
    for (const Index b : refined) weights.of_blocks(0, b) = -std::numeric_limits<T>::infinity();
    const bool some_coarse = std::ssize(refined) < weights.of_blocks.cols();
    const T largest = some_coarse ? weights.of_blocks.maxCoeff() : T(0);
    exponentiate_rows<T>(context, weights.of_blocks, std::span(&largest, 1));
    const T sum = weights.of_blocks.sum();

    Index place = 0;
    for (const Index b : refined) {
      const auto [first, of_block] = coarse.keys[static_cast<size_t>(b)];
      multiply_transposed<T>(context, row_block(head.Q, begin, count), row_block(head.K, first, of_block),
                             columns<Out<T>>(weights.exact, place, of_block));
      place += of_block;
    }
    PerRow<T> shift(count, some_coarse ? largest : -std::numeric_limits<T>::infinity()), factor(count);
    for (Index i = 0; i < count && width > 0; ++i) shift[i] = std::max(shift[i], weights.exact.row(i).maxCoeff());
    exponentiate_rows<T>(context, weights.exact, std::span<const T>(shift));
    for (Index i = 0; i < count; ++i) {
      const T of_coarse = some_coarse ? std::exp(largest - shift[i]) : T(0);
      factor[i] = 1 / (weights.exact.row(i).sum() + of_coarse * sum + epsilon_);
      weights.of_coarse[i] = of_coarse * factor[i];
    }
    scale_rows<T>(weights.exact, std::span<const T>(factor));
    return weights;
  }

  Index block_, refine_;
  T epsilon_;
};

struct Sizes {
  double query_blocks, key_blocks, refined, block;
};

Sizes sizes(const Params& params, const Shape& shape) {
  const Index b = params.integer("block");
  const auto blocks = [b](Index n) {
    const Index count = (n + b - 1) / b;
    return static_cast<double>(count);
  };
  Sizes found{blocks(shape.nq), blocks(shape.nk), 0, static_cast<double>(std::min({b, shape.nq, shape.nk}))};
  found.refined = std::min(static_cast<double>(params.integer("refine")), found.query_blocks * found.key_blocks);
  return found;
}

const bool registered = add(method<Mra>({
    .text = {.name = "mra",
             .printed = "MRA-2",
             .summary = "blocks of the attention matrix as one number each, the largest of them exact",
             .formula =
                 "A = rownorm(exp(q_i.k_j) on the refined pairs of blocks, exp(mu_A.mu_B) on the others), mu the "
                 "means of blocks",
             .reference = "Zeng et al. 2022, arXiv:2207.10284",
             .cost = "O((n/b)^2 (d + dv) + n d + refine b^2 (d + dv)) time, O((n/b)^2 + n/b (d + dv)) memory",
             .family = "resolution",
             .departure =
                 "the authors' module takes the largest mu_A.mu_B less the largest of the same A, and adds 1e-6 "
                 "to denominators (epsilon); its n is a multiple of 32",
             .aliases = {"mra-2"}},
    .parameters = {Parameter::integer("block", 32, "tokens of a block", 1, 1 << 20),
                   Parameter::integer("refine", 256, "pairs of blocks that are exact, of a whole head", 0).as_budget(),
                   Parameter::real("epsilon", 0,
                                   "added to the sum of a row, whose largest weight is 1; the authors' module has 1e-6",
                                   0, 1)
                       .as_published()},
    .claims =
        [](const Params&, const Shape& shape) {
          return Claims{.row_stochastic = true,
                        .non_negative = true,
                        .no_form = shape.mask.causal ? "the mean of a block of queries or keys holds later tokens" : "",
                        .exact_when = "refine=1000000000"};
        },
    .memory =
        [](const Params& params, const Shape& shape) {
          const auto [query_blocks, key_blocks, refined, block] = sizes(params, shape);
          const double d = static_cast<double>(shape.d), dv = static_cast<double>(shape.dv);
          return 16 * query_blocks * key_blocks + 8 * (query_blocks + key_blocks) * d +
                 key_blocks * dv * (8 + bytes_of(shape.precision)) +
                 refined / query_blocks * block * block * bytes_of(shape.precision);
        },
    .cost =
        [](const Params& params, const Shape& shape) {
          const auto [query_blocks, key_blocks, refined, block] = sizes(params, shape);
          const double pairs = query_blocks * key_blocks, exact = refined * block * block;
          return Work{.flops = 2 * (pairs + exact) * static_cast<double>(shape.d + shape.dv), .exps = pairs + exact};
        },
}));

}  // namespace
}  // namespace attnbench::mra_method
