// EVA: exact weights in a window, a control variate for each chunk of the other keys. Zheng, Yuan, Wang and Kong,
// arXiv:2302.04542, section 4.
//   positions are cut into windows of w tokens, [b w, (b+1) w); the n keys into chunks P_c, parts of windows or several
//   row i sees the keys of its window one by one, and of chunk c the keys outside of its window, P_ic:
//   out_i = (sum_(j in window) exp(q_i.k_j) v_j + sum_c |P_ic| exp(q_i.kbar_ic) beta_ic) / (the same sums without
//   values) kbar_ic = mean of the keys P_ic,  beta_ic = sum_(j in P_ic) xi_cj v_j / sum_(j in P_ic) xi_cj, xi_cj =
//   exp(w_c.k_j - |k_j|^2 / 2),  w_c ~ N(qbar_c + kbar_c, I), means over the tokens of chunk c  methods.md A10
// |P| exp(q.kbar) is at most the chunk's sum of exp(q.k_j) (Jensen) and equal to it where its keys are equal.
// B = ceil(n / w) windows: with c >= B each is cut into min(floor(c / B), w) even chunks, else ceil(B / c) windows make
// a chunk. There are at most c chunks, and only then do a row's window and a chunk overlap: statistics of the windows
// before it and after it are merged for P_ic, in O(n (d + dv)) for all rows. Exact for w >= n, and if every chunk is
// one key (c >= B w).
// Causal: row i sees its window up to itself, and of the keys before the window all. The proposal of a chunk of several
// windows then averages the tokens of its first window alone, which no row that uses the chunk precedes.
// qbar_c = 0 for a chunk at whose positions there is no query. Padded tokens are in no chunk.
// As in the authors' module: overlapping=true, chunks keep the keys of the row's own window, which then count twice;
// sizes=false, the weight of a chunk is exp(q.kbar), that of one key; noise=false, w_c = qbar_c + kbar_c, which the
// module takes in evaluation mode.
// O(n (w + c) (d + dv)) time, O((n / w + c) (d + dv) + w) memory.
#include <algorithm>
#include <cmath>

#include "harness/core/approximation.hpp"
#include "harness/linalg/per_row.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench::eva_method {
namespace {

constexpr Index row_block_size = 64;

// How n keys are cut. Piece p is the part of the keys whose statistics are computed at once: a chunk, or a window of a
// chunk that has several.
struct Layout {
  Layout(Index keys, Index c, Index w) : n(keys), window(w), windows(keys > 0 ? (keys - 1) / w + 1 : 0) {
    if (windows == 0) return;
    if (c >= windows)
      parts = std::min({c / windows, window, n});
    else
      windows_in_chunk = (windows - 1) / c + 1;
    span = std::min(window, n);
    while (piece_begin(windows * parts - 1 - empty) >= n) ++empty;
  }

  Index pieces() const { return windows * parts - empty; }
  Index chunks() const { return windows == 0 ? 0 : (pieces() - 1) / windows_in_chunk + 1; }
  Index piece_begin(Index p) const { return std::min(n, p / parts * window + p % parts * span / parts); }
  Index piece_size(Index p) const { return piece_begin(p + 1) - piece_begin(p); }
  Index chunk_of(Index piece) const { return piece / windows_in_chunk; }
  Index first_piece(Index chunk) const { return std::min(pieces(), chunk * windows_in_chunk); }

  Index n, window, windows;
  Index parts = 1, windows_in_chunk = 1;  // chunks in a window, or windows in a chunk
  Index span = 0;                         // the length that `parts` divide
  Index empty = 0;                        // pieces of the last window that begin beyond the keys
};

// Sums over keys: how many, their mean, and the mean of their values by weights xi whose sum has the logarithm `log`.
template <class T>
struct Summary {
  explicit Summary(Index rows, Index d, Index dv) : keys(rows, d), values(rows, dv), count(rows), log(rows) {}

  // Row `to` becomes the summary of the keys of row a of `first` and row b of `second`.
  void merge(Index to, const Summary& first, Index a, const Summary& second, Index b) {
    if (first.count[a] == 0) return copy(to, second, b);
    if (second.count[b] == 0) return copy(to, first, a);
    const T all = first.count[a] + second.count[b];
    keys.row(to) = first.keys.row(a) * (first.count[a] / all) + second.keys.row(b) * (second.count[b] / all);
    const T largest = std::max(first.log[a], second.log[b]);
    const T share_a = std::exp(first.log[a] - largest), share_b = std::exp(second.log[b] - largest);
    values.row(to) =
        first.values.row(a) * (share_a / (share_a + share_b)) + second.values.row(b) * (share_b / (share_a + share_b));
    log[to] = largest + std::log(share_a + share_b);
    count[to] = all;
  }
  void copy(Index to, const Summary& from, Index row) {
    keys.row(to) = from.keys.row(row);
    values.row(to) = from.values.row(row);
    count[to] = from.count[row];
    log[to] = from.log[row];
  }

  Matrix<T> keys, values;
  PerRow<T> count, log;
};

Index floor_division(Index a, Index b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

template <class T>
class Eva final : public Approximation<T> {
 public:
  explicit Eva(const Draw& draw)
      : c_(draw.params.integer("c")),
        window_(draw.params.integer("window")),
        overlapping_(draw.params.flag("overlapping")),
        sizes_(draw.params.flag("sizes")) {
    const Index count = std::min(c_, draw.shape.nk), d = draw.shape.d;
    if (const auto* given = draw.injected("z", count, d)) {
      z_ = *given;
      return;
    }
    Generator generator = draw.streams.stream("eva", draw.head, draw.replicate);
    z_ = standard_normal(generator, count, d);
    if (!draw.params.flag("noise")) z_.setZero();
  }

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    const Index nq = head.Q.rows(), n = Mask{.keys = mask.keys}.visible(0, head.K.rows());
    if (n == 0 || nq == 0) return void(out.setZero());
    const Layout layout(n, c_, window_);
    const Chunks chunks(summarise(layout, head, mask, context), layout);
    const Index first = floor_division(mask.offset, window_), last = floor_division(mask.offset + nq - 1, window_);
    context.for_blocks(last - first + 1, 1, [&](Context& single, Index block, Index) {
      attend_window(first + block, layout, chunks, head, mask, single, out);
    });
  }

  Tensors state() const override { return {{"z", z_}}; }

 private:
  // Summaries of the pieces, of the pieces of the same chunk before and after each, and of the chunks.
  struct Chunks {
    Chunks(Summary<T> of_pieces, const Layout& layout)
        : pieces(std::move(of_pieces)),
          before(rows(layout), pieces.keys.cols(), pieces.values.cols()),
          after(rows(layout), pieces.keys.cols(), pieces.values.cols()),
          chunks(layout.windows_in_chunk > 1 ? layout.chunks() : 0, pieces.keys.cols(), pieces.values.cols()) {
      for (Index c = 0; c < chunks.keys.rows(); ++c) {
        const Index begin = layout.first_piece(c), end = layout.first_piece(c + 1);
        before.count[begin] = after.count[end - 1] = 0;
        for (Index p = begin + 1; p < end; ++p) before.merge(p, before, p - 1, pieces, p - 1);
        for (Index p = end - 2; p >= begin; --p) after.merge(p, pieces, p + 1, after, p + 1);
        chunks.merge(c, before, end - 1, pieces, end - 1);
      }
    }
    static Index rows(const Layout& layout) { return layout.windows_in_chunk > 1 ? layout.pieces() : 0; }
    const Summary<T>& whole() const { return chunks.keys.rows() > 0 ? chunks : pieces; }

    Summary<T> pieces, before, after, chunks;
  };

  Summary<T> summarise(const Layout& layout, const Head<T>& head, Mask mask, Context& context) const {
    const Index d = head.K.cols(), pieces = layout.pieces();
    Summary<T> summary(pieces, d, head.V.cols());
    context.for_blocks(layout.chunks(), 1, [&](Context& single, Index c, Index) {
      const Index first = layout.first_piece(c), end = layout.first_piece(c + 1);
      const Index begin = layout.piece_begin(first);
      const Index averaged = layout.piece_begin(mask.causal ? first + 1 : end) - begin;
      const Matrix<T> w = proposal(head, mask, begin, averaged, z_.row(c));
      for (Index p = first; p < end; ++p) {
        const Index at = layout.piece_begin(p), count = layout.piece_size(p);
        const In<T> K = row_block(head.K, at, count);
        Matrix<T> xi(1, count);
        multiply_transposed<T>(single, w, K, xi);
        xi.array() -= K.rowwise().squaredNorm().transpose().array() / 2;
        const T largest = xi.maxCoeff();
        exponentiate_rows<T>(single, xi, std::span<const T>(&largest, 1));
        const T sum = xi.sum();
        summary.log[p] = largest + std::log(sum);
        summary.count[p] = static_cast<T>(count);
        summary.keys.row(p) = K.colwise().mean();
        xi /= sum;
        multiply<T>(single, xi, row_block(head.V, at, count), row_block(summary.values, p, 1));
      }
    });
    return summary;
  }

  // w_c for the tokens at positions [begin, begin + count), 1 x d.
  static Matrix<T> proposal(const Head<T>& head, Mask mask, Index begin, Index count, const Eigen::RowVectorXd& z) {
    const Index nq = head.Q.rows();
    const Index row = std::clamp<Index>(begin - mask.offset, 0, nq);
    const Index end = std::clamp<Index>(begin + count - mask.offset, row, nq);
    Eigen::RowVectorXd mean = row_block(head.K, begin, count).template cast<double>().colwise().mean();
    if (end > row) mean += row_block(head.Q, row, end - row).template cast<double>().colwise().mean();
    return (mean + z).template cast<T>();
  }

  // The rows at positions of window b: softmax over the chunks that they see, each a key with the logarithm of its
  // size, and over the keys of the window.
  void attend_window(Index b, const Layout& layout, const Chunks& chunks, const Head<T>& head, Mask mask,
                     Context& context, Out<T> out) const {
    const Index nq = head.Q.rows(), d = head.K.cols(), dv = head.V.cols();
    const Index row = std::max<Index>(0, b * window_ - mask.offset);
    const Index end = std::min(nq, (b + 1) * window_ - mask.offset);
    const Index begin = std::clamp<Index>(b * window_, 0, layout.n);
    const Index own = std::clamp<Index>((b + 1) * window_, 0, layout.n) - begin;
    if (mask.causal && b < 0) return void(row_block(out, row, end - row).setZero());

    const Summary<T>& whole = chunks.whole();
    Summary<T> seen(whole.keys.rows() + 1, d, dv);
    Index count = 0;
    const bool apart = !overlapping_ && own > 0;
    const Index first_piece = b * layout.parts, first = apart ? layout.chunk_of(first_piece) : whole.keys.rows();
    const Index after = apart ? layout.chunk_of(std::min(first_piece + layout.parts, layout.pieces()) - 1) + 1 : first;
    for (Index c = 0; c < first; ++c) seen.copy(count++, whole, c);
    if (apart && layout.windows_in_chunk > 1) {
      if (mask.causal)
        seen.copy(count, chunks.before, b);
      else
        seen.merge(count, chunks.before, b, chunks.after, b);
      if (seen.count[count] > 0) ++count;
    }
    for (Index c = after; !mask.causal && c < whole.keys.rows(); ++c) seen.copy(count++, whole, c);

    const In<T> chunk_keys = row_block(seen.keys, 0, count), chunk_values = row_block(seen.values, 0, count);
    Eigen::Array<T, 1, Eigen::Dynamic> log_sizes(count);
    for (Index c = 0; c < count; ++c) log_sizes[c] = sizes_ ? std::log(seen.count[c]) : T(0);
    for (Index i = row; i < end; i += row_block_size) {
      const Index rows = std::min(row_block_size, end - i);
      const In<T> Q = row_block(head.Q, i, rows);
      Matrix<T> A(rows, count + own);
      const Out<T> of_chunks(A.data(), rows, count, A.cols()), of_window(A.data() + count, rows, own, A.cols());
      if (count > 0) multiply_transposed<T>(context, Q, chunk_keys, of_chunks);
      if (own > 0) multiply_transposed<T>(context, Q, row_block(head.K, begin, own), of_window);
      A.leftCols(count).array().rowwise() += log_sizes;
      for (Index r = 0; r < rows; ++r)
        softmax_within<T>(context, A, r, 0, count + std::clamp<Index>(mask.visible(i + r, layout.n) - begin, 0, own));
      auto block = row_block(out, i, rows);
      block.setZero();
      if (count > 0) multiply_add<T>(context, of_chunks, chunk_values, block);
      if (own > 0) multiply_add<T>(context, of_window, row_block(head.V, begin, own), block);
    }
  }

  Index c_, window_;
  bool overlapping_, sizes_;
  Matrix<double> z_;  // min(c, nk) x d
};

struct Counts {
  double pairs, chunks, pieces, summaries, window;
};
Counts counts(const Params& params, const Shape& shape) {
  const Layout layout(Mask{.keys = shape.mask.keys}.visible(0, shape.nk), params.integer("c"),
                      params.integer("window"));
  const double causal = shape.mask.causal ? 0.5 : 1;
  const double window = static_cast<double>(std::min(layout.window, layout.n));
  const double chunks = layout.windows > 1 || params.flag("overlapping") ? static_cast<double>(layout.chunks()) : 0;
  const double pieces = static_cast<double>(layout.pieces());
  return {static_cast<double>(shape.nq) * causal * (window + chunks), chunks, pieces,
          pieces * (layout.windows_in_chunk > 1 ? 3 : 1), window};
}

const bool registered = add(method<Eva>({
    .text = {.name = "eva",
             .printed = "EVA",
             .summary = "exact weights in the row's window of tokens, one control variate for each chunk of other keys",
             .formula = "softmax over the window's keys and one key for each chunk, with value beta_c = "
                        "sum xi_cj v_j / sum xi_cj and weight |P_c| exp(q_i.kbar_c)",
             .reference = "Zheng et al. 2023, arXiv:2302.04542",
             .cost = "O(n (w + c) (d + dv)) time, O((n / w + c) (d + dv) + w) memory beyond input and output",
             .family = "randomised",
             .departure = "chunks have no learnt layers, and windows do not overlap"},
    .parameters = {Parameter::integer("c", 64, "chunks of keys, at most", 1, 1 << 30).as_budget(),
                   Parameter::integer("window", 64, "tokens of a window", 1, 1 << 30),
                   Parameter::flag("overlapping", false,
                                   "true: chunks keep the keys of the row's own window, which then count twice")
                       .as_published(),
                   Parameter::flag("sizes", true, "false: a chunk counts as one key").as_published(),
                   Parameter::flag("noise", true,
                                   "false: w_c = qbar_c + kbar_c, as in evaluation mode of the authors' module")
                       .as_published()},
    .claims =
        [](const Params& params, const Shape& shape) {
          const bool unwritten = params.flag("overlapping") && shape.mask.causal;
          return Claims{.row_stochastic = true,
                        .non_negative = true,
                        .no_form = unwritten ? "overlapping chunks have no form under a causal mask here" : "",
                        .equal_keys = true,
                        .causal_exact = true,
                        // Rows before the first key lie in windows without keys.
                        .exact_when = shape.mask.offset < 0 ? "" : "window=1000000000"};
        },
    .memory =
        [](const Params& params, const Shape& shape) {
          const Counts of = counts(params, shape);
          const double rows = static_cast<double>(std::min({row_block_size, params.integer("window"), shape.nq}));
          return ((of.summaries + 2 * of.chunks) * static_cast<double>(shape.d + shape.dv + 2) +
                  rows * (of.window + of.chunks)) *
                 bytes_of(shape.precision);
        },
    .cost =
        [](const Params& params, const Shape& shape) {
          const Counts of = counts(params, shape);
          const double nk = static_cast<double>(shape.nk);
          return Work{.flops = 2 * (of.pairs + nk) * static_cast<double>(shape.d + shape.dv), .exps = of.pairs + nk};
        },
}));

}  // namespace
}  // namespace attnbench::eva_method
