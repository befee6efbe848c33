#include "approximations/sparse/sparse_softmax.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "approximations/softmax/key_value_cache.hpp"
#include "approximations/softmax/running_softmax.hpp"
#include "approximations/sparse/tile_columns.hpp"
#include "approximations/sparse/window_eviction.hpp"
#include "harness/linalg/exp.hpp"
#include "harness/linalg/rounding.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench {

IndexRun run_between(Index begin, Index end, Index first, Index step) {
  if (step == 1) return {begin, std::max<Index>(0, end - begin), 1};
  const Index behind = (begin - first) % step;  // has the sign of begin - first in C++
  const Index start = behind == 0 ? begin : begin + (behind > 0 ? step - behind : -behind);
  return {start, start < end ? (end - start + step - 1) / step : 0, step};
}

namespace {

constexpr Index tile_columns = 1024;  // columns of weights in memory at a time
// Tiles of at least so many rows are laid out as keys x rows: products then read keys and values in place, and leave
// out what the rows do not see. Of fewer rows, a vector would be empty mostly.
constexpr Index wide_rows = 8, wide_columns = 256;
constexpr Index rows_in_turn = 256;  // of a block that a thread takes; a single thread takes all rows in one
// Several rows' product with few keys costs more than copying these keys. Where the runs of a tile are shorter than
// this in the mean, its keys and values are packed first, so many at a time. (evict at a tenth of softmax's FLOPs, n =
// 4096: 2.2 times as fast. A single row took longer so.)
constexpr Index short_run = 8, packed_rows = 4, packed_columns = 512;
template <class T>
constexpr T lowest = -std::numeric_limits<T>::infinity();

template <class T>
using Entries = Eigen::Map<Eigen::Array<T, 1, Eigen::Dynamic>>;

template <class T>
In<T> view(const In<T>& X, IndexRun run) {
  return {X.data() + run.first * X.outerStride(), run.count, X.cols(), run.step * X.outerStride()};
}
template <class T>
Out<T> view(const Out<T>& X, IndexRun run) {
  return {const_cast<T*>(X.data()) + run.first * X.outerStride(), run.count, X.cols(), run.step * X.outerStride()};
}

Index tiles_of_residue(const PatternPart& part) {
  const Index rows = (part.end - part.begin + part.stride - 1) / part.stride;
  return (rows + part.tile_rows - 1) / part.tile_rows;
}

Index tiles_of(const PatternPart& part) {
  const Index rows = std::max<Index>(0, part.end - part.begin);
  return rows == 0 ? 0 : std::min(part.stride, rows) * tiles_of_residue(part);
}

IndexRun rows_of_tile(const PatternPart& part, Index tile) {
  const Index each = tiles_of_residue(part), residues = tiles_of(part) / each;
  const Index residue = part.near ? tile % residues : tile / each;
  const Index skipped = (part.near ? tile / residues : tile % each) * part.tile_rows;
  IndexRun rows =
      run_between(part.begin + residue + skipped * part.stride, part.end, part.begin + residue, part.stride);
  rows.count = std::min(rows.count, part.tile_rows);
  return rows;
}

// Running maxima and sums of all rows.
template <class T>
struct Sums {
  explicit Sums(Index rows) : maximum(static_cast<size_t>(rows), lowest<T>), sum(static_cast<size_t>(rows), 0) {}
  std::vector<T> maximum, sum;
};

// One thread's working memory, reused for every tile.
template <class T>
class TileSoftmax {
 public:
  TileSoftmax(const SparsePattern& pattern, const Head<T>& head, Mask mask, Out<T> out, Sums<T>& sums)
      : pattern_(pattern), head_(head), mask_(mask), out_(out), sums_(sums) {}

  // Adds the rows' keys in one part of the pattern. alone: the rows have no other part, so this finishes `out`.
  void add(Context& context, size_t part, IndexRun rows, bool alone) {
    columns_.lay(pattern_, part, rows, mask_, head_.K.rows());
    fetch_next(rows);
    const auto runs = std::ssize(columns_.runs());
    packed_ = rows.count >= packed_rows && runs > 1 && columns_.width() < short_run * runs;
    if (rows.count >= wide_rows) return add_wide(context, rows, alone);
    columns_.find_segments();
    const Index most = packed_ ? packed_columns : tile_columns;
    const bool one_piece = columns_.width() <= most;
    if (alone && !one_piece) view(out_, rows).setZero();
    for (Index column = 0; column < columns_.width(); column += most) {
      piece_ = {column, std::min(column + most, columns_.width())};
      const Out<T> W = weights(rows.count);
      if (packed_) pack();
      logits(context, rows, W);
      if (alone && one_piece) {
        for (Index r = 0; r < rows.count; ++r) normalise(context, rows.first + r * rows.step, r, W);
      } else {
        for (Index r = 0; r < rows.count; ++r) weigh(context, rows.first + r * rows.step, r, W);
      }
      gather_values(context, rows, W, !(alone && one_piece));
    }
    if (!alone) return;
    // Also needed in a tile whose other rows see keys: there 0 times a negative value gives -0.
    for (Index r = 0; r < rows.count; ++r)
      if (columns_.segments(r).empty()) out_.row(rows.first + r * rows.step).setZero();
    if (!one_piece) finish(rows);
  }

  void finish(IndexRun rows) {
    for (Index r = 0; r < rows.count; ++r) {
      const Index i = rows.first + r * rows.step;
      if (const T sum = sums_.sum[static_cast<size_t>(i)]; sum > 0) out_.row(i) /= sum;
    }
  }

 private:
  // Prefetches data that the next tile is likely to need and this one is not: the rows after these, and the keys after
  // the last range, which moves along with the rows. (n = 65536: makes local 1.3 times faster.)
  void fetch_next(IndexRun rows) {
    if (rows.step != 1) return;
    const auto following = [&](const In<T>& X, Index end) {
      return row_block(X, end, std::clamp<Index>(X.rows() - end, 0, rows.count));
    };
    const Index next = rows.first + rows.count;
    upcoming_.clear();
    upcoming_.push_back(following(head_.Q, next));
    upcoming_.push_back(following(In<T>(out_), next));
    for (size_t u = columns_.runs().size(); u-- > 0;) {
      const IndexRun& run = columns_.runs()[u];
      if (run.step != 1) continue;
      upcoming_.push_back(following(head_.K, run.first + run.count));
      upcoming_.push_back(following(head_.V, run.first + run.count));
      break;
    }
    fetch_during_products<T>(upcoming_);
  }

  // W has exactly the columns of the piece; its rows are padded to whole SIMD vectors.
  Out<T> weights(Index rows) {
    const Index columns = piece_.end - piece_.begin, stride = in_whole_vectors<T>(columns);
    if (memory_.size() < rows * stride) memory_.setZero(rows, stride);
    return {memory_.data(), rows, columns, stride};
  }

  // Calls body(keys, their first column in the piece) for each run of the piece.
  template <class Body>
  void for_runs(const Body& body) const {
    for (size_t u = 0; u < columns_.runs().size(); ++u) {
      const IndexRun& run = columns_.runs()[u];
      const Index base = columns_.columns()[u];
      const Index begin = std::max(base, piece_.begin), end = std::min(base + run.count, piece_.end);
      if (begin < end)
        body(IndexRun{run.first + (begin - base) * run.step, end - begin, run.step}, begin - piece_.begin);
    }
  }
  // The same with the run's columns of W.
  template <class Body>
  void for_runs(const Out<T>& W, const Body& body) const {
    for_runs([&](IndexRun keys, Index column) {
      body(keys, Out<T>(const_cast<T*>(W.data()) + column, W.rows(), keys.count, W.outerStride()));
    });
  }

  // Copies the keys and values of the piece next to each other.
  void pack() {
    if (keys_.rows() == 0) {
      keys_.resize(packed_columns, head_.K.cols());
      values_.resize(packed_columns, head_.V.cols());
    }
    Index to = 0;
    for_runs([&](IndexRun run, Index) {
      for (Index l = 0; l < run.count; ++l, ++to) {
        keys_.row(to) = head_.K.row(run.first + l * run.step);
        values_.row(to) = head_.V.row(run.first + l * run.step);
      }
    });
  }

  // The same as add, for a tile of keys x rows.
  void add_wide(Context& context, IndexRun rows, bool alone) {
    const Out<T> output = view(out_, rows);
    RunningSoftmax<T> softmax(output);
    for (Index r = 0; r < rows.count; ++r) {
      softmax.maximum(r) = sums_.maximum[static_cast<size_t>(rows.first + r * rows.step)];
      softmax.sum(r) = sums_.sum[static_cast<size_t>(rows.first + r * rows.step)];
    }
    columns_.find_rows();
    find_bands(rows.count);
    const Index stride = in_whole_vectors<T>(rows.count);
    const Matrix<T> Qt = transposed<T>(view(head_.Q, rows), stride);
    const Index most = packed_ ? packed_columns : wide_columns;
    if (memory_.size() < most * stride) memory_.resize(most, stride);
    for (Index column = 0; column < columns_.width(); column += most) {
      piece_ = {column, std::min(column + most, columns_.width())};
      if (packed_) pack();
      const Out<T> tile(memory_.data(), piece_.end - piece_.begin, stride, stride);
      clip_bands();
      for_keys(head_.K, keys_, [&](const In<T>& keys, Index first) {
        find_needed<T>(bands_, first, keys.rows(), needed_);
        multiply_needed<T>(context, keys, Qt, needed_, row_block(tile, first, keys.rows()));
      });
      for (const Band& band : bands_) hide_unseen(band, tile);
      softmax.raise(tile, bands_);
      softmax.rescale();
      softmax.weigh(context, tile, bands_);
      int seen = 0;
      for (Index c = piece_.begin; c < piece_.end; ++c) seen += std::popcount(columns_.rows_that_see(c));
      context.work.exps += seen;
      for_keys(head_.V, values_, [&](const In<T>& values, Index first) {
        for (size_t b = 0; b < bands_.size(); ++b) {
          const Band& band = bands_[b];
          const Index begin = std::max(first, band.begin), end = std::min(first + values.rows(), band.end);
          if (begin >= end) continue;
          const In<T> weights(tile.data() + begin * stride + band.query, end - begin, band.queries, stride);
          const In<T> seen_values = row_block(values, begin - first, end - begin);
          const Out<T> of_band = row_block(output, band.query, band.queries);
          if (alone && piece_.begin + begin == begins_[b])
            transposed_multiply<T>(context, weights, seen_values, of_band);
          else
            transposed_multiply_add<T>(context, weights, seen_values, of_band);
        }
      });
    }
    if (alone) softmax.finish();
    for (Index r = 0; r < rows.count; ++r) {
      const Index i = rows.first + r * rows.step;
      sums_.maximum[static_cast<size_t>(i)] = softmax.maximum(r);
      sums_.sum[static_cast<size_t>(i)] = softmax.sum(r);
      if (alone && columns_.extent(r).end == 0) out_.row(i).setZero();  // not written, or 0 times NaN
    }
  }

  // Groups of rows and the columns between the first and the last that any of them sees.
  void find_bands(Index rows) {
    bands_of_tile_.clear();
    for (Index row = 0; row < rows; row += Band::step) {
      Band band{row, std::min(Band::step, rows - row), columns_.width(), 0};
      for (Index r = row; r < row + band.queries; ++r) {
        const auto [begin, end] = columns_.extent(r);
        band.begin = std::min(band.begin, begin);
        band.end = std::max(band.end, end);
      }
      Band* before = bands_of_tile_.empty() ? nullptr : &bands_of_tile_.back();
      if (before && before->begin == band.begin && before->end == band.end)
        before->queries += band.queries;
      else
        bands_of_tile_.push_back(band);
    }
  }
  // Those of the piece.
  void clip_bands() {
    bands_.clear();
    begins_.clear();
    for (Band band : bands_of_tile_) {
      const Index begin = band.begin;
      band.begin = std::max(band.begin, piece_.begin) - piece_.begin;
      band.end = std::min(band.end, piece_.end) - piece_.begin;
      if (band.begin >= band.end) continue;
      bands_.push_back(band);
      begins_.push_back(begin);
    }
  }

  // Calls body(keys or values, their first column in the piece) for each run of the piece, or once if they are packed.
  template <class Body>
  void for_keys(const In<T>& all, const Matrix<T>& packed, const Body& body) const {
    if (packed_) return body(row_block(In<T>(packed), 0, piece_.end - piece_.begin), 0);
    for_runs([&](IndexRun run, Index column) { body(view(all, run), column); });
  }

  // Writes -infinity to the logits of rows that do not see a key.
  void hide_unseen(const Band& band, Out<T> tile) const {
    const auto [first, last] = band.columns<T>();
    const std::uint64_t all = ~std::uint64_t(0) >> (RunningSoftmax<T>::most_queries - band.queries);
    for (Index l = band.begin; l < band.end; ++l)
      if (const std::uint64_t own = columns_.rows_that_see(piece_.begin + l) >> band.query; (own & all) != all)
        hide<T>({tile.data() + l * tile.outerStride() + first, static_cast<size_t>(last - first)}, own);
  }

  void logits(Context& context, IndexRun rows, const Out<T>& W) const {
    const In<T> Q = view(head_.Q, rows);
    if (packed_) return multiply_transposed<T>(context, Q, row_block(In<T>(keys_), 0, W.cols()), W);
    for_runs(W, [&](IndexRun keys, Out<T> part) { multiply_transposed<T>(context, Q, view(head_.K, keys), part); });
  }

  void gather_values(Context& context, IndexRun rows, const Out<T>& W, bool add) {
    const Out<T> block = view(out_, rows);
    if (packed_) {
      const In<T> values = row_block(In<T>(values_), 0, W.cols());
      return add ? multiply_add<T>(context, W, values, block) : multiply<T>(context, W, values, block);
    }
    for_runs(W, [&](IndexRun keys, Out<T> part) {
      if (add)
        multiply_add<T>(context, part, view(head_.V, keys), block);
      else
        multiply<T>(context, part, view(head_.V, keys), block);
      add = true;
    });
  }

  // Calls body for each run of columns of W that row r of the tile sees in the piece.
  template <class Body>
  void for_segments(Index r, const Body& body) const {
    for (const auto& s : columns_.segments(r)) {
      const Index begin = std::max(s.begin, piece_.begin), end = std::min(s.end, piece_.end);
      if (begin < end) body(begin - piece_.begin, end - begin);
    }
  }

  T maximum(Index r, const Out<T>& W) const {
    T largest = lowest<T>;
    for_segments(
        r, [&](Index begin, Index count) { largest = std::max(largest, W.row(r).segment(begin, count).maxCoeff()); });
    return largest;
  }

  // Writes exp(W_rj - shift) where the row sees, 0 elsewhere, and returns the sum. Exponentiates whole SIMD vectors and
  // then zeroes the entries beside the segment: handling partial vectors entry by entry took a tenth of local
  // attention's time. Goes from the last segment to the first, so that the entries before each one are unchanged.
  T exponentiate(Context& context, Index r, Out<T> W, T shift) const {
    T* row = W.data() + r * W.outerStride();
    const auto segments = columns_.segments(r);
    T sum = 0;
    Index done = W.outerStride();  // entries from here on are final
    for (size_t s = segments.size(); s-- > 0;) {
      const Index begin = std::max(segments[s].begin, piece_.begin) - piece_.begin;
      const Index end = std::min(segments[s].end, piece_.end) - piece_.begin;
      if (begin >= end) continue;
      const Index first = s == 0 ? begin / lanes<T> * lanes<T> : begin;
      const Index last = std::min(done, in_whole_vectors<T>(end));
      Entries<T> wide(row + first, last - first);
      wide = exponential(wide - shift);
      std::fill(row + first, row + begin, T(0));
      std::fill(row + end, row + done, T(0));
      round_to<T>(context.rounding(), Out<T>(row + begin, 1, end - begin, end - begin));
      sum += Entries<T>(row + begin, end - begin).sum();
      context.work.exps += static_cast<double>(end - begin);
      done = first;
    }
    std::fill(row, row + done, T(0));
    return sum;
  }

  // Row i, row r of the tile, sees nothing beyond the piece.
  void normalise(Context& context, Index i, Index r, Out<T> W) {
    const T largest = maximum(r, W), sum = exponentiate(context, r, W, largest);
    for_segments(r, [&](Index begin, Index count) { W.row(r).segment(begin, count) /= sum; });
    if (context.rounding() != Rounding::none) round_to<T>(context.rounding(), Out<T>(&W(r, 0), 1, W.cols(), W.cols()));
    sums_.maximum[static_cast<size_t>(i)] = largest;
    sums_.sum[static_cast<size_t>(i)] = sum;
  }

  // Computes weights relative to the new running maximum, and rescales the row of `out` and its sum to it.
  void weigh(Context& context, Index i, Index r, Out<T> W) {
    T& maximum_so_far = sums_.maximum[static_cast<size_t>(i)];
    T& sum = sums_.sum[static_cast<size_t>(i)];
    const T largest = std::max(maximum_so_far, maximum(r, W));
    if (largest != maximum_so_far && sum > 0) {
      const T factor = std::exp(maximum_so_far - largest);
      sum *= factor;
      out_.row(i) *= factor;
    }
    maximum_so_far = largest;
    sum += exponentiate(context, r, W, largest);
  }

  const SparsePattern& pattern_;
  const Head<T>& head_;
  Mask mask_;
  Out<T> out_;
  Sums<T>& sums_;
  std::vector<In<T>> upcoming_;
  std::vector<Band> bands_of_tile_, bands_;  // the latter of the piece
  std::vector<Index> begins_;                // the first columns of the piece's bands in the tile
  std::vector<ColumnRange> needed_;
  TileColumns columns_;
  TileColumns::Segment piece_;
  Matrix<T> memory_;
  bool packed_ = false;
  Matrix<T> keys_, values_;  // of the piece, if they are packed
};

bool each_row_is_in_one(std::vector<PatternPart> parts, Index nq) {
  std::erase_if(parts, [](const PatternPart& part) { return part.begin >= part.end; });
  std::sort(parts.begin(), parts.end(), [](const PatternPart& a, const PatternPart& b) { return a.begin < b.begin; });
  Index covered = 0;
  for (const PatternPart& part : parts) {
    if (part.begin != covered) return false;
    covered = part.end;
  }
  return covered == nq;
}

// All runs of one row.
void runs_of_row(const SparsePattern& pattern, const std::vector<PatternPart>& parts, Index i, Mask mask, Index nk,
                 std::vector<IndexRun>& runs) {
  runs.clear();
  const Index visible = mask.visible(i, nk);
  if (visible == 0) return;
  for (size_t part = 0; part < parts.size(); ++part)
    if (i >= parts[part].begin && i < parts[part].end) pattern.keys(part, i + mask.offset, visible, runs);
  std::erase_if(runs, [](const IndexRun& run) { return run.count <= 0; });
}

}  // namespace

template <class T>
void sparse_softmax(const SparsePattern& pattern, const Head<T>& head, Mask mask, Context& context, Out<T> out,
                    std::span<T> log_normalisers) {
  const Index nq = head.Q.rows();
  const auto parts = pattern.parts(nq, mask);
  const bool alone = each_row_is_in_one(parts, nq);
  Sums<T> sums(nq);
  if (!alone) out.setZero();
  for (size_t part = 0; part < parts.size(); ++part) {
    const Index all = tiles_of(parts[part]), few = rows_in_turn / parts[part].tile_rows;
    // The tiles of a block share working memory, and often the layout of their columns.
    context.for_blocks(all, std::max<Index>(1, context.threads() > 1 ? few : all),
                       [&](Context& single, Index first, Index count) {
                         TileSoftmax<T> tiles(pattern, head, mask, out, sums);
                         for (Index tile = first; tile < first + count; ++tile)
                           if (const IndexRun rows = rows_of_tile(parts[part], tile); rows.count > 0)
                             tiles.add(single, part, rows, alone);
                       });
  }
  if (!alone)
    for (Index i = 0; i < nq; ++i)
      if (const T sum = sums.sum[static_cast<size_t>(i)]; sum > 0) out.row(i) /= sum;
  for (size_t i = 0; i < log_normalisers.size(); ++i)
    log_normalisers[i] = sums.sum[i] > 0 ? sums.maximum[i] + std::log(sums.sum[i]) : lowest<T>;
}

template <class T>
void sparse_softmax_rows(const SparsePattern& pattern, const Head<T>& head, Mask mask, Index first, Context& context,
                         Out<T> A) {
  const auto parts = pattern.parts(head.Q.rows(), mask);
  std::vector<IndexRun> runs;
  A.setZero();
  for (Index i = 0; i < A.rows(); ++i) {
    runs_of_row(pattern, parts, first + i, mask, A.cols(), runs);
    Index width = 0;
    for (const IndexRun& run : runs) width += run.count;
    Matrix<T> weights(1, width);
    const In<T> q = row_block(head.Q, first + i, 1);
    for (Index column = 0; const IndexRun& run : runs) {
      multiply_transposed<T>(context, q, view(head.K, run), Out<T>(weights.data() + column, 1, run.count, run.count));
      column += run.count;
    }
    softmax_within<T>(context, weights, 0, 0, width);
    for (Index column = 0; const IndexRun& run : runs)
      for (Index l = 0; l < run.count; ++l) A(i, run.first + l * run.step) = weights(0, column++);
  }
}

void keys_of_pattern(const SparsePattern& pattern, Index nq, Index nk, Mask mask, Index first,
                     std::span<std::vector<Index>> keys) {
  const auto parts = pattern.parts(nq, mask);
  std::vector<IndexRun> runs;
  for (size_t i = 0; i < keys.size(); ++i) {
    runs_of_row(pattern, parts, first + static_cast<Index>(i), mask, nk, runs);
    keys[i].clear();
    Index count = 0;
    for (const IndexRun& run : runs) count += run.count;
    keys[i].reserve(static_cast<size_t>(count));
    for (const IndexRun& run : runs)
      for (Index l = 0; l < run.count; ++l) keys[i].push_back(run.first + l * run.step);
    if (!std::is_sorted(keys[i].begin(), keys[i].end())) std::sort(keys[i].begin(), keys[i].end());
  }
}

double pairs_of(const SparsePattern& pattern, const Shape& shape) {
  const auto parts = pattern.parts(shape.nq, shape.mask);
  std::vector<IndexRun> runs;
  double pairs = 0;
  for (Index i = 0; i < shape.nq; ++i) {
    runs_of_row(pattern, parts, i, shape.mask, shape.nk, runs);
    for (const IndexRun& run : runs) pairs += static_cast<double>(run.count);
  }
  return pairs;
}

namespace {

// Keeps all keys and values; each step computes the pattern's row at the token's position.
template <class T>
class PatternDecoder final : public Decoder<T> {
 public:
  PatternDecoder(const SparsePattern& pattern, const Shape& shape)
      : pattern_(pattern), K_(shape.nk, shape.d), V_(shape.nk, shape.dv) {}

  void prefill(const Head<T>& tokens, Context&) override {
    for (Index j = 0; j < tokens.K.rows(); ++j) keep(tokens, j);
  }
  void step(const Head<T>& token, Context& context, Out<T> out) override {
    keep(token, 0);
    const Head<T> head{token.Q, row_block(K_, 0, kept_), row_block(V_, 0, kept_)};
    sparse_softmax<T>(pattern_, head, {.causal = true, .offset = kept_ - 1}, context, out);
  }
  size_t bytes() const override { return static_cast<size_t>(kept_ * (K_.cols() + V_.cols())) * sizeof(T); }

 private:
  void keep(const Head<T>& tokens, Index j) {
    if (kept_ == K_.rows())
      throw Misuse(
          fmt::format("a decoder for {} tokens was given one more; make it with a larger shape.nk", K_.rows()));
    K_.row(kept_) = tokens.K.row(j);
    V_.row(kept_++) = tokens.V.row(j);
  }

  const SparsePattern& pattern_;
  Matrix<T> K_, V_;
  Index kept_ = 0;
};

}  // namespace

template <class T>
std::unique_ptr<Decoder<T>> SparseSoftmax<T>::decoder(const Shape& shape) const {
  if (const auto recent = pattern_->recent())
    return std::make_unique<KeyValueCache<T>>(shape,
                                              std::make_unique<WindowEviction<T>>(recent->sinks, recent->window));
  if (!pattern_->sees_itself()) return nullptr;
  return std::make_unique<PatternDecoder<T>>(*pattern_, shape);
}

MethodEntry sparse_method(MethodEntry entry, const MakePattern& make) {
  entry.text.family = "sparse";
  entry.f32 = [make](const Draw& draw) { return std::make_unique<SparseSoftmax<float>>(make(draw)); };
  entry.f64 = [make](const Draw& draw) { return std::make_unique<SparseSoftmax<double>>(make(draw)); };
  if (!entry.claims)
    entry.claims = [](const Params&, const Shape&) {
      return Claims{.row_stochastic = true, .non_negative = true, .causal_exact = true};
    };
  entry.cost = [make](const Params& params, const Shape& shape) {
    const double pairs = pairs_of(*make({.shape = shape, .params = params, .streams = Streams(0)}), shape);
    return Work{.flops = 2 * pairs * static_cast<double>(shape.d + shape.dv), .exps = pairs};
  };
  entry.memory = [](const Params&, const Shape& shape) {
    return 2 * static_cast<double>(shape.nq) * bytes_of(shape.precision);
  };
  return entry;
}

#define ATTNBENCH_INSTANTIATE(T)                                                                               \
  template void sparse_softmax<T>(const SparsePattern&, const Head<T>&, Mask, Context&, Out<T>, std::span<T>); \
  template void sparse_softmax_rows<T>(const SparsePattern&, const Head<T>&, Mask, Index, Context&, Out<T>);   \
  template class SparseSoftmax<T>;
ATTNBENCH_INSTANTIATE(float)
ATTNBENCH_INSTANTIATE(double)
#undef ATTNBENCH_INSTANTIATE

}  // namespace attnbench
