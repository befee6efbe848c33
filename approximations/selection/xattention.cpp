// XAttention: softmax over blocks of keys scored by sums along their antidiagonals. Xu et al. 2025, arXiv:2503.16428,
// algorithm 1.
//   g_ab = (1/S) sum_u q_(aS+S-1-u).k_(bS+u), u < S: the antidiagonal of an S x S square of logits, over S
//   score of key block J for row block I = sum over groups a in I, b in J of softmax_b(g_a)_b              methods.md U
//   I keeps the fewest blocks whose scores sum to `mass` of all;  under a causal mask its own and the first before
//   others
// Every column and diagonal of a square crosses its antidiagonal. Scores take O(n^2 d / S). Rows of a block share what
// they keep, so that a row depends on later ones of its own block, as published. Rows and keys beyond the ends are 0.
#include <fmt/format.h>

#include "approximations/selection/head_pattern.hpp"
#include "approximations/selection/kept_blocks.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench::xattention_method {
namespace {

struct Settings {
  Index block, stride;
  double mass;
};

Settings settings_of(const Params& params) {
  return {.block = params.integer("block"), .stride = params.integer("stride"), .mass = params.real("mass")};
}

// Row a: the rows aS, ..., aS + S - 1 of X side by side, in reverse order if asked for; 0 beyond the last row.
template <class T>
Matrix<T> side_by_side(const In<T>& X, Index stride, bool reversed) {
  Matrix<T> groups = Matrix<T>::Zero((X.rows() + stride - 1) / stride, stride * X.cols());
  for (Index i = 0; i < X.rows(); ++i) {
    const Index place = reversed ? stride - 1 - i % stride : i % stride;
    groups.row(i / stride).segment(place * X.cols(), X.cols()) = X.row(i);
  }
  return groups;
}

template <class T>
class XAttention final : public HeadPattern<T> {
 public:
  explicit XAttention(const Draw& draw) : settings_(settings_of(draw.params)) {}

 private:
  std::unique_ptr<const SparsePattern> pattern_of(const Head<T>& head, Mask mask, Context& context) const override {
    const Index nq = head.Q.rows(), nk = Mask{.keys = mask.keys}.visible(0, head.K.rows());
    const Matrix<T> keys = side_by_side<T>(row_block(head.K, 0, nk), settings_.stride, false);
    std::vector<std::vector<IndexRun>> kept(static_cast<size_t>((nq + settings_.block - 1) / settings_.block));
    context.for_blocks(std::ssize(kept), 1, [&](Context& single, Index I, Index) {
      const Index first = I * settings_.block, count = std::min(settings_.block, nq - first);
      kept[static_cast<size_t>(I)] = blocks_of(single, row_block(head.Q, first, count), keys, first, mask, nk);
    });
    return std::make_unique<KeptBlocks>(settings_.block, settings_.block, mask.offset, std::move(kept));
  }

  // The blocks that the rows Q keep; `first` is the number of the first of them.
  std::vector<IndexRun> blocks_of(Context& context, const In<T>& Q, const Matrix<T>& keys, Index first, Mask mask,
                                  Index nk) const {
    const Index last = first + Q.rows() - 1, seen = mask.visible(last, nk);
    const Index blocks = (seen + settings_.block - 1) / settings_.block;
    if (blocks == 0) return {};
    std::vector<double> scores(static_cast<size_t>(blocks), 0);
    const Matrix<T> queries = side_by_side<T>(Q, settings_.stride, true);
    const Index groups = (seen + settings_.stride - 1) / settings_.stride;
    Matrix<T> weights(queries.rows(), groups);
    multiply_transposed<T>(context, queries, row_block(keys, 0, groups), weights);
    weights /= static_cast<T>(settings_.stride);
    for (Index a = 0; a < weights.rows(); ++a) {
      const Index of_group = mask.visible(std::min(last, first + (a + 1) * settings_.stride - 1), nk);
      const Index end = (of_group + settings_.stride - 1) / settings_.stride;
      softmax_within<T>(context, weights, a, 0, end);
      for (Index b = 0; b < end; ++b)
        scores[static_cast<size_t>(b * settings_.stride / settings_.block)] += static_cast<double>(weights(a, b));
    }
    std::vector<Index> kept, others;
    double all = 0, sum = 0;
    for (Index J = 0; J < blocks; ++J) {
      const bool own = (J + 1) * settings_.block > first + mask.offset && J * settings_.block <= last + mask.offset;
      const bool forced = mask.causal && (J == 0 || own);
      (forced ? kept : others).push_back(J);
      all += scores[static_cast<size_t>(J)];
      if (forced) sum += scores[static_cast<size_t>(J)];
    }
    sort_by_score(others, scores);
    for (const Index J : others) {
      if (settings_.mass < 1 && sum >= settings_.mass * all) break;
      sum += scores[static_cast<size_t>(J)];
      kept.push_back(J);
    }
    return runs_of(kept);
  }

  Settings settings_;
};

const bool registered = add(method<XAttention>({
    .text = {.name = "xattention",
             .printed = "XAttention",
             .summary = "softmax over the blocks of keys whose antidiagonals have most weight",
             .formula = "rows of block I see the fewest blocks J whose scores sum to mass of all, score_IJ = sum over "
                        "groups a in I, b in J of softmax_b(g_a)_b, g_ab = (1/S) sum_u q_(aS+S-1-u).k_(bS+u)",
             .reference = "Xu et al. 2025, arXiv:2503.16428, algorithm 1",
             .cost = "O(n^2 d / stride + pairs (d + dv)) time, O(n (d + block / stride^2)) memory",
             .family = "selection",
             .departure = "one threshold for all heads; the paper also searches for one for each",
             .aliases = {"x-attention"}},
    .parameters = {Parameter::integer("block", 128, "queries and keys of a block", 1),
                   Parameter::integer("stride", 8, "S: side of the squares whose antidiagonals are added up", 1),
                   Parameter::real("mass", 0.9, "the share of the scores that the kept blocks have; 1: all blocks",
                                   1e-6, 1)},
    .claims = [](const Params&,
                 const Shape&) { return Claims{.row_stochastic = true, .non_negative = true, .exact_when = "mass=1"}; },
    .memory =
        [](const Params& params, const Shape& shape) {
          const Settings settings = settings_of(params);
          const double nk = static_cast<double>(shape.nk), stride = static_cast<double>(settings.stride);
          const double block = static_cast<double>(std::min(settings.block, shape.nq));
          const auto d = static_cast<double>(shape.d);
          return (nk * d + block * d + block / stride * nk / stride + 2 * static_cast<double>(shape.nq)) *
                 bytes_of(shape.precision);
        },
    .cost =
        [](const Params& params, const Shape& shape) {
          const Settings settings = settings_of(params);
          const double d = static_cast<double>(shape.d), stride = static_cast<double>(settings.stride);
          const double seen = sum_over_blocks(shape, [](Index keys) { return keys; });
          const double pairs = settings.mass * seen;  // as if scores were equal
          return Work{.flops = 2 * seen * d / stride + 2 * pairs * (d + static_cast<double>(shape.dv)),
                      .exps = seen / stride / stride + pairs};
        },
    .check =
        [](const Params& params) {
          const Settings settings = settings_of(params);
          if (settings.block % settings.stride != 0)
            throw Misuse(
                fmt::format("xattention: block={} is no multiple of stride={}; give for example "
                            "xattention:block=128,stride=8",
                            settings.block, settings.stride));
        },
}));

}  // namespace
}  // namespace attnbench::xattention_method
