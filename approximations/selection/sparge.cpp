// SpargeAttn: softmax over blocks of keys that pooled queries and keys predict, except where pooling would hide much.
// Zhang et al. 2025, arXiv:2502.18137, section 3.3, without the second stage, which skips products by their values.
//   q^_I, k^_J = means of a block of `rows` queries and of `block` keys;  P^_I = softmax over similar J of q^_I.k^_J
//   similar: the mean cosine of all pairs in the block is above `similar`                                  methods.md U
//   I keeps the most predicted blocks while their P^ sums to at most `mass`, at least one;  and every J that is not
//   similar;  and all of them if I is not similar.  With sink, and the first block
// Rows of a block share what they keep. Pooled queries and keys of a causal mask contain later tokens, so that a row
// depends on later ones of its own block, as published. Rows may find none of their keys kept without sink=true, which
// is an option of the authors that is off; their kernel then divides by 0.
#include <cmath>

#include "approximations/selection/head_pattern.hpp"
#include "approximations/selection/kept_blocks.hpp"

namespace attnbench::sparge_method {
namespace {

struct Settings {
  Index rows, block;
  double mass, similar;
  bool sink;
};

// Means of blocks of rows of X, and which of them are similar.
template <class T>
struct Pooled {
  Pooled(const In<T>& X, Index size, double similar_above)
      : means((X.rows() + size - 1) / size, X.cols()), similar(static_cast<size_t>(means.rows())) {
    for (Index block = 0; block < means.rows(); ++block) {
      const Index count = std::min(size, X.rows() - block * size);
      const In<T> rows = row_block(X, block * size, count);
      means.row(block) = rows.colwise().mean();
      // The sum of the cosines of all pairs is |sum of unit vectors|^2.
      Eigen::RowVectorXd units = Eigen::RowVectorXd::Zero(X.cols());
      for (Index i = 0; i < count; ++i) {
        const Eigen::RowVectorXd x = rows.row(i).template cast<double>();
        if (const double length = x.norm(); length > 0) units += x / length;
      }
      similar[static_cast<size_t>(block)] = units.squaredNorm() > similar_above * static_cast<double>(count * count);
    }
  }
  Matrix<T> means;
  std::vector<bool> similar;
};

Settings settings_of(const Params& params) {
  return {.rows = params.integer("rows"),
          .block = params.integer("block"),
          .mass = params.real("mass"),
          .similar = params.real("similar"),
          .sink = params.flag("sink")};
}

template <class T>
class SpargeAttn final : public HeadPattern<T> {
 public:
  explicit SpargeAttn(const Draw& draw) : settings_(settings_of(draw.params)) {}

 private:
  std::unique_ptr<const SparsePattern> pattern_of(const Head<T>& head, Mask mask, Context& context) const override {
    const Index nq = head.Q.rows(), nk = Mask{.keys = mask.keys}.visible(0, head.K.rows());
    const Pooled<T> queries(head.Q, settings_.rows, settings_.similar);
    const Pooled<T> keys(row_block(head.K, 0, nk), settings_.block, settings_.similar);
    Matrix<T> logits(queries.means.rows(), keys.means.rows());
    if (logits.size() > 0) multiply_transposed<T>(context, queries.means, keys.means, logits);
    std::vector<std::vector<IndexRun>> kept;
    for (Index I = 0; I < logits.rows(); ++I) {
      const Index seen = mask.visible(std::min(nq, (I + 1) * settings_.rows) - 1, nk);
      const Index blocks = (seen + settings_.block - 1) / settings_.block;
      if (!queries.similar[static_cast<size_t>(I)])
        kept.push_back({{0, blocks}});
      else
        kept.push_back(predicted(context, logits.row(I).template cast<double>(), keys.similar, blocks));
    }
    return std::make_unique<KeptBlocks>(settings_.rows, settings_.block, mask.offset, std::move(kept));
  }

  // Of the first `blocks` blocks of keys.
  std::vector<IndexRun> predicted(Context& context, const Eigen::RowVectorXd& logits, const std::vector<bool>& similar,
                                  Index blocks) const {
    std::vector<Index> kept, scored;
    for (Index J = 0; J < blocks; ++J) (similar[static_cast<size_t>(J)] ? scored : kept).push_back(J);
    sort_by_score(scored, {logits.data(), static_cast<size_t>(logits.size())});
    double all = 0, sum = 0;
    const auto weight = [&](Index J) { return std::exp(logits(J) - logits(scored.front())); };
    for (const Index J : scored) all += weight(J);
    context.work.exps += static_cast<double>(scored.size());
    for (const Index J : scored) {
      sum += weight(J);
      if (J != scored.front() && settings_.mass < 1 && sum > settings_.mass * all) break;
      kept.push_back(J);
    }
    if (settings_.sink && blocks > 0 && std::find(kept.begin(), kept.end(), 0) == kept.end()) kept.push_back(0);
    return runs_of(kept);
  }

  Settings settings_;
};

// As if queries and keys had independent directions, whose mean cosine in a block is one over its size.
double share_of_keys(const Settings& settings) {
  const auto least = static_cast<double>(std::max(settings.rows, settings.block));
  return 1 / least > settings.similar ? settings.mass : 1;
}

const bool registered = add(method<SpargeAttn>({
    .text = {.name = "sparge",
             .printed = "SpargeAttn",
             .summary = "softmax over the blocks of keys that pooled queries and keys predict, and over those that are "
                        "not alike in themselves",
             .formula = "rows of block I see block J if J is among the largest P^_IJ that sum to at most mass, P^_I = "
                        "softmax(mean(q_I).mean(k_J)), or if I or J has a mean cosine of at most `similar`",
             .reference = "Zhang et al. 2025, arXiv:2502.18137, section 3.3",
             .cost = "O(n^2 / (rows block) d + pairs (d + dv)) time, O(n / block d) memory",
             .family = "selection",
             .departure = "without the second stage, which skips blocks by their largest weight, and without 8-bit "
                          "products; sink=true is an option that the authors leave off",
             .aliases = {"spargeattn"}},
    .parameters = {Parameter::integer("rows", 128, "queries of a block, which share what they keep", 1),
                   Parameter::integer("block", 64, "keys of a block", 1),
                   Parameter::real("mass", 0.9, "the predicted weight that the kept blocks may have; 1: all blocks",
                                   1e-6, 1),
                   Parameter::real("similar", 0.1, "blocks are pooled if their mean cosine is above this", -1, 1),
                   Parameter::flag("sink", true, "the first block is kept, so that no row is empty")},
    .claims = [](const Params&,
                 const Shape&) { return Claims{.row_stochastic = true, .non_negative = true, .exact_when = "mass=1"}; },
    .memory =
        [](const Params& params, const Shape& shape) {
          const Settings settings = settings_of(params);
          const double of_rows = static_cast<double>(shape.nq) / static_cast<double>(settings.rows);
          const double of_keys = static_cast<double>(shape.nk) / static_cast<double>(settings.block);
          const double bytes = bytes_of(shape.precision), d = static_cast<double>(shape.d);
          return (of_rows + of_keys) * d * bytes + of_rows * of_keys * bytes +
                 2 * static_cast<double>(shape.nq) * bytes;
        },
    .cost =
        [](const Params& params, const Shape& shape) {
          const Settings settings = settings_of(params);
          const double seen = sum_over_blocks(shape, [](Index keys) { return keys; });
          const double pairs = seen * share_of_keys(settings);
          const Index query_blocks = (shape.nq + settings.rows - 1) / settings.rows,
                      key_blocks = (shape.nk + settings.block - 1) / settings.block;
          const double scored = static_cast<double>(query_blocks * key_blocks);
          return Work{
              .flops = 2 * scored * static_cast<double>(shape.d) + 2 * pairs * static_cast<double>(shape.d + shape.dv),
              .exps = pairs};
        },
}));

}  // namespace
}  // namespace attnbench::sparge_method
