// Vertical-slash: columns and diagonals that the last queries look at. Jiang et al. 2024 (MInference 1.0),
// arXiv:2407.02490, algorithm 2. A-shape: ibid., section 3. Tri-shape: Li et al. 2024, arXiv:2412.10319.
//   w = softmax rows of the last `rows` queries;  score of column j = sum_i w_ij;  of diagonal t = sum_i w_i,p(i)-t
//   columns: the `first` first ones and the `vertical` best others;  diagonals p - j = t: the `last` nearest and the
//   `slash` best others (ties: the first);  row i sees j <= p(i) on any of these lines                     methods.md U
// shape=a has only the first columns and the last diagonals; shape=tri also lets the last `rows` rows see all keys.
// Rows of vertical-slash depend on later queries: it prepares a prompt, after which decoding is exact. A and tri do
// not. The authors take softmax with 1/sqrt(d) here, but without it in the search for the shape of each head
// (scaled=false).
#include <cmath>
#include <numeric>

#include "approximations/selection/chosen_keys.hpp"
#include "approximations/selection/head_pattern.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench::vertical_slash_method {
namespace {

// Columns, which all rows share, in tiles; the nearest diagonals, which neighbouring rows share, in lower ones; and
// diagonals alone, a row at a time. Then rows that see all keys.
class Lines final : public SparsePattern {
 public:
  // Both ascending.
  Lines(std::vector<Index> columns, std::vector<Index> diagonals, Index full_rows)
      : columns_(std::move(columns)), diagonals_(std::move(diagonals)), full_rows_(full_rows) {
    while (near_ < std::ssize(diagonals_) && diagonals_[static_cast<size_t>(near_)] == near_) ++near_;
    on_diagonal_.resize(diagonals_.empty() ? 0 : static_cast<size_t>(diagonals_.back()) + 1, false);
    for (const Index t : diagonals_) on_diagonal_[static_cast<size_t>(t)] = true;
  }

  std::vector<PatternPart> parts(Index nq, Mask) const override {
    const Index full = std::max<Index>(0, nq - full_rows_);
    return {{.end = full},
            {.end = full, .tile_rows = std::clamp<Index>(near_ / 8, 1, 64)},
            {.end = full, .tile_rows = 1},
            {.begin = full, .end = nq}};
  }
  void keys(size_t part, Index position, Index visible, std::vector<IndexRun>& runs) const override {
    const size_t begin = runs.size();
    if (part == 0) {
      for (const Index j : columns_)
        if (j < visible && j <= position && !on_diagonal(position - j)) add(j, begin, runs);
    } else if (part == 1) {
      runs.push_back(run_between(std::max<Index>(0, position - near_ + 1), std::min(visible, position + 1)));
    } else if (part == 2) {
      for (auto t = std::ssize(diagonals_); t-- > near_;) {
        const Index j = position - diagonals_[static_cast<size_t>(t)];
        if (j >= 0 && j < visible) add(j, begin, runs);
      }
    } else {
      runs.push_back({0, visible});
    }
  }

 private:
  bool on_diagonal(Index t) const { return t < std::ssize(on_diagonal_) && on_diagonal_[static_cast<size_t>(t)]; }
  // Lengthens the last run of this row, which has those from `begin` on, or begins another one.
  static void add(Index j, size_t begin, std::vector<IndexRun>& runs) {
    if (runs.size() > begin && runs.back().first + runs.back().count == j)
      ++runs.back().count;
    else
      runs.push_back({j, 1});
  }

  std::vector<Index> columns_, diagonals_;
  std::vector<bool> on_diagonal_;
  Index full_rows_, near_ = 0;  // diagonals [0, near_) are all there
};

struct Settings {
  Index vertical, slash, first, last, rows;
  bool chosen, full_rows, scaled;
};

Settings settings_of(const Params& params) {
  return {.vertical = params.integer("vertical"),
          .slash = params.integer("slash"),
          .first = params.integer("first"),
          .last = params.integer("last"),
          .rows = params.integer("rows"),
          .chosen = params.text("shape") == "vertical-slash",
          .full_rows = params.text("shape") == "tri",
          .scaled = params.flag("scaled")};
}

// The `always` first lines and the `others` best of those after them, ascending.
std::vector<Index> best_lines(const std::vector<double>& scores, Index always, Index others) {
  std::vector<Index> lines(scores.size());
  std::iota(lines.begin(), lines.end(), Index(0));
  const Index count = std::min(std::ssize(lines), always) + others;
  keep_largest(lines, count, [&](Index line) { return std::pair(line < always, scores[static_cast<size_t>(line)]); });
  std::sort(lines.begin(), lines.end());
  return lines;
}

template <class T>
class VerticalSlash final : public HeadPattern<T> {
 public:
  explicit VerticalSlash(const Draw& draw) : settings_(settings_of(draw.params)) {}

 private:
  std::unique_ptr<const SparsePattern> pattern_of(const Head<T>& head, Mask mask, Context& context) const override {
    const Index nq = head.Q.rows(), seen = nq > 0 ? mask.visible(nq - 1, head.K.rows()) : 0;
    const Index positions = std::max<Index>(0, nq + mask.offset);
    std::vector<double> columns(static_cast<size_t>(seen), 0), diagonals(static_cast<size_t>(positions), 0);
    if (settings_.chosen && seen > 0) add_weights(head, mask, context, columns, diagonals);
    return std::make_unique<Lines>(best_lines(columns, settings_.first, settings_.chosen ? settings_.vertical : 0),
                                   best_lines(diagonals, settings_.last, settings_.chosen ? settings_.slash : 0),
                                   settings_.full_rows ? settings_.rows : 0);
  }

  // Adds the weights of the last queries to their columns and diagonals.
  void add_weights(const Head<T>& head, Mask mask, Context& context, std::vector<double>& columns,
                   std::vector<double>& diagonals) const {
    const Index nq = head.Q.rows(), count = std::min(settings_.rows, nq), seen = std::ssize(columns);
    Matrix<T> weights(count, seen);
    multiply_transposed<T>(context, row_block(head.Q, nq - count, count), row_block(head.K, 0, seen), weights);
    if (!settings_.scaled) weights *= std::sqrt(static_cast<T>(head.Q.cols()));
    for (Index r = 0; r < count; ++r) {
      const Index row = nq - count + r, visible = mask.visible(row, seen);
      softmax_within<T>(context, weights, r, 0, visible);
      for (Index j = 0; j < visible; ++j) {
        const auto weight = static_cast<double>(weights(r, j));
        columns[static_cast<size_t>(j)] += weight;
        diagonals[static_cast<size_t>(row + mask.offset - j)] += weight;
      }
    }
  }

  Settings settings_;
};

// The number of lines through a row that sees `seen` of n keys, if chosen lines are spread evenly. Keys on two lines
// count twice: the product over a tile's columns computes them for all of its rows.
double lines_of_row(const Settings& settings, double seen, double n) {
  const auto lines = [&](Index always, Index others) {
    const double first = std::min(static_cast<double>(always), seen);
    if (!settings.chosen || n <= first) return first;
    return first + std::min(static_cast<double>(others), n - first) * (seen - first) / (n - first);
  };
  return std::min(seen, lines(settings.first, settings.vertical) + lines(settings.last, settings.slash));
}

const bool registered = add(method<VerticalSlash>({
    .text =
        {.name = "vertical-slash",
         .printed = "MInference",
         .summary = "softmax over the columns and diagonals that the last queries look at, or over an A or tri shape",
         .formula = "row i sees j <= i in the first columns and those of largest sum_i w_ij, and on the last diagonals "
                    "and those of largest sum_i w_i,i-t, w the softmax rows of the last queries",
         .reference = "Jiang et al. 2024, MInference, arXiv:2407.02490, algorithm 2",
         .cost = "O(n rows d + n (first + vertical + last + slash) (d + dv)) time, O(rows n) memory",
         .family = "selection",
         .departure = "vertical and slash do not count the lines that are always there (there: the larger of both "
                      "numbers); keys beside a diagonal, which the authors' kernel adds in blocks of 64, are not read",
         .aliases = {"minference"}},
    .parameters = {Parameter::integer("slash", 64, "diagonals chosen beyond the last ones", 0).as_budget(),
                   Parameter::integer("vertical", 64, "columns chosen beyond the first ones", 0),
                   Parameter::integer("first", 30, "first columns, always there", 0),
                   Parameter::integer("last", 100, "nearest diagonals, always there, the row's own included", 1),
                   Parameter::integer("rows", 64, "last queries, whose weights choose the lines", 1),
                   Parameter::choice("shape", "vertical-slash",
                                     "which lines: chosen ones too; or the first and the last only (a), "
                                     "and the last queries see all keys (tri)",
                                     {"vertical-slash", "a", "tri"}),
                   Parameter::flag("scaled", true,
                                   "false: the weights that choose are softmax of the unscaled Q.K, as in the "
                                   "authors' search for the shape of a head")
                       .as_published()},
    .claims =
        [](const Params& params, const Shape& shape) {
          return Claims{.row_stochastic = true,
                        .non_negative = true,
                        .no_form = shape.mask.causal ? "" : "diagonals are those of tokens before the row",
                        .causal_exact = params.text("shape") != "vertical-slash",
                        .exact_when = "last=1000000000"};
        },
    .memory =
        [](const Params& params, const Shape& shape) {
          const Settings settings = settings_of(params);
          const double nk = static_cast<double>(shape.nk), bytes = bytes_of(shape.precision);
          const double rows = static_cast<double>(std::min(settings.rows, shape.nq));
          return (settings.chosen ? rows * nk * bytes : 0) + 2 * static_cast<double>(shape.nq) * bytes + 48 * nk;
        },
    .cost =
        [](const Params& params, const Shape& shape) {
          const Settings settings = settings_of(params);
          const double d = static_cast<double>(shape.d), channels = d + static_cast<double>(shape.dv);
          const double n = static_cast<double>(shape.nk);
          const auto queries = static_cast<double>(std::min(settings.rows, shape.nq));
          const double observed = settings.chosen ? queries * n : 0;
          const Index full = settings.full_rows ? std::max<Index>(0, shape.nq - settings.rows) : shape.nq;
          const double pairs = sum_over_rows(shape, [&](Index seen, Index position) {
            const auto keys = static_cast<double>(seen);
            if (position - shape.mask.offset >= full) return keys;
            return lines_of_row(settings, keys, n);
          });
          return Work{.flops = 2 * observed * d + 2 * pairs * channels, .exps = observed + pairs};
        },
}));

}  // namespace
}  // namespace attnbench::vertical_slash_method
