#include "approximations/linear/linear_attention.hpp"

#include <algorithm>
#include <cmath>

#include "harness/linalg/exp.hpp"
#include "harness/linalg/exponentials.hpp"
#include "harness/linalg/per_row.hpp"
#include "harness/linalg/rows.hpp"
#include "harness/linalg/vector.hpp"

namespace attnbench {

namespace {
constexpr Index query_block = 256;
constexpr Index queries_in_turn = 4 * query_block;  // per thread, so that it can prefetch its next queries
constexpr Index rows_in_band = 16;                  // of a chunk: their products leave out keys that none of them sees
constexpr Index rows_side_by_side = 16 * causal_chunk;  // causal scan: chunks end here at every number of threads

template <class T>
constexpr T lowest = -std::numeric_limits<T>::infinity();

// How far the exponent of a key in a causal chunk may exceed the chunk's scales. The limit is seldom reached, and sums
// over many keys stay far from overflow (e^88 in float, e^709 in double). Half precision overflows at e^11.
template <class T>
T most_above_scale(const Context& context) {
  if (context.rounding() == Rounding::f16) return 2;
  return std::is_same_v<T, float> ? T(40) : T(300);
}

template <class T>
std::span<T> first(std::vector<T>& v, Index count) {
  return {v.data(), static_cast<size_t>(count)};
}
}  // namespace

template <class T>
std::unique_ptr<const LinearAttention<T>> LinearAttention<T>::for_keys(const In<T>& K, Context& context) const {
  if (!map_->depends_on_keys()) return nullptr;
  return std::make_unique<const LinearAttention>(map_->given_keys(context, K));
}

template <class T>
void LinearAttention<T>::attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const {
  stream(head, mask, {out}, context, [&](Index first_row, Out<T> numerators, std::span<T> normalisers, std::span<T>) {
    divide_rows<T>(numerators, normalisers, row_block(out, first_row, numerators.rows()));
  });
}

template <class T>
void LinearAttention<T>::normalisers(const Head<T>& head, Mask mask, Context& context, std::span<T> values,
                                     std::span<T> log_scale) const {
  const Matrix<T> one = Matrix<T>::Ones(head.K.rows(), 1);  // any V will do: the numerators are not used
  stream({head.Q, head.K, one, head.extra}, mask, {}, context,
         [&](Index first_row, Out<T>, std::span<T> block_values, std::span<T> block_scale) {
           std::copy(block_values.begin(), block_values.end(), values.begin() + first_row);
           std::copy(block_scale.begin(), block_scale.end(), log_scale.begin() + first_row);
         });
}

template <class T>
void LinearAttention<T>::stream(const Head<T>& head, Mask mask, const RowsAlongside& alongside, Context& context,
                                const OnRows& on_rows) const {
  const Index unpadded = Mask{.keys = mask.keys}.visible(0, head.K.rows());
  if (const auto same = for_keys(row_block(head.K, 0, unpadded), context))
    same->stream(head, mask, alongside, context, on_rows);
  else if (mask.causal)
    stream_causal(head, mask, alongside, context, on_rows);
  else
    stream_bidirectional(head, mask, alongside, context, on_rows);
}

template <class T>
void LinearAttention<T>::stream_bidirectional(const Head<T>& head, Mask mask, const RowsAlongside& alongside,
                                              Context& context, const OnRows& on_rows) const {
  const Index nq = head.Q.rows(), dv = head.V.cols();
  const LinearState<T> state = absorb_all<T>(*map_, head, mask.visible(0, head.K.rows()), context);
  context.for_blocks(nq, queries_in_turn, [&](Context& single, Index first_row, Index rows_in_turn) {
    const Index capacity = std::min(query_block, rows_in_turn), end = first_row + rows_in_turn;
    FeatureBlock<T> queries(*map_, capacity);
    Matrix<T> memory(capacity, dv);
    PerRow<T> sums(capacity), scales(std::ssize(sums));
    for (Index begin = first_row; begin < end; begin += query_block) {
      const Index count = std::min(query_block, end - begin), next = std::min(query_block, end - begin - count);
      auto numerators = corner(memory, count, dv);
      const auto normalisers = first(sums, count), log_scale = first(scales, count);
      if (state.empty()) {
        numerators.setZero();
        std::fill(normalisers.begin(), normalisers.end(), T(0));
        std::fill(log_scale.begin(), log_scale.end(), lowest<T>);
      } else {
        queries.map(single, row_block(head.Q, begin, count), Side::query, begin);
        queries.scale_queries(single, state.scale);
        std::vector<In<T>> wanted{row_block(head.Q, begin + count, next)};
        for (const In<T>& view : alongside) wanted.push_back(row_block(view, begin, count));
        fetch_during_products<T>(wanted);
        state.read(single, queries.block(), numerators, normalisers);
        std::copy_n(queries.log_scale().begin(), count, log_scale.begin());
      }
      on_rows(begin, numerators, normalisers, log_scale);
    }
  });
}

// Computes the rows of one chunk from the state before it and its own keys.
template <class T>
void LinearAttention<T>::attend_chunk(const Head<T>& head, Mask mask, const Chunk& c, FeatureBlock<T>& queries,
                                      FeatureBlock<T>& keys, const LinearState<T>& state, Context& context,
                                      const OnRows& on_rows) const {
  if (c.rows == 0) return;
  const Index nk = head.K.rows(), dv = head.V.cols();
  if (c.key + c.keys == 0) {
    Matrix<T> numerators = Matrix<T>::Zero(c.rows, dv);
    PerRow<T> normalisers(c.rows, T(0)), log_scale(std::ssize(normalisers), lowest<T>);
    return on_rows(c.row, numerators, normalisers, log_scale);
  }
  const Index all = queries.block().rows(), all_keys = keys.block().rows();
  const Index width = in_whole_vectors<T>(all_keys);
  Matrix<T> numerators(all, dv), weights(all, width);
  PerRow<T> normalisers(all);
  state.read(context, queries.block(), numerators, normalisers);
  // Only the keys up to the last one that some neighbouring rows see. Where a chunk is cut short depends on later
  // keys, so these rows are those of the whole chunk: bits do not depend on it.
  const auto reach = [&](Index i) { return std::min(mask.visible(c.row + i, nk) - c.key, all_keys); };
  std::vector<ColumnRange> needed;
  for (Index i = 0; i < all; i += strip_rows)
    needed.push_back({0, in_whole_vectors<T>(reach(std::min(i + strip_rows, all) - 1))});
  multiply_needed<T>(context, queries.block(), transposed<T>(keys.block(), width), needed, weights);
  for (Index i = 0; i < all; ++i) {
    const Index seen = i < c.rows ? reach(i) : 0;
    weights.row(i).tail(width - seen).setZero();
    normalisers[i] += weights.row(i).head(seen).sum();
  }
  for (Index i = 0, rows = 0; i < all; i += rows) {
    rows = all - i <= rows_in_band + 1 ? all - i : rows_in_band;  // a single row would be summed in another order
    const Index inner = reach(i + rows - 1);
    multiply_add<T>(context, In<T>(weights.row(i).data(), rows, inner, width), row_block(head.V, c.key, inner),
                    row_block(numerators, i, rows));
  }
  const auto kept = static_cast<size_t>(c.rows);
  on_rows(c.row, row_block(numerators, 0, c.rows), std::span(normalisers).first(kept), queries.log_scale().first(kept));
}

template <class T>
void LinearAttention<T>::stream_causal(const Head<T>& head, Mask mask, const RowsAlongside& alongside, Context& context,
                                       const OnRows& on_rows) const {
  // Emulated half precision rounds every partial sum in order, and only the sequential scan adds in that order.
  const bool side_by_side = context.threads() > 1 && context.rounding() == Rounding::none;
  Streamed streamed{LinearState<T>(*map_, head.V.cols())};
  for (Index row = 0; row < head.Q.rows(); row += rows_side_by_side) {
    const Index end = std::min(row + rows_side_by_side, head.Q.rows());
    if (side_by_side && scan_side_by_side(head, mask, row, end, streamed, context, on_rows)) continue;
    scan(head, mask, alongside, row, end, streamed, context,
         [&](const Chunk& c, FeatureBlock<T>& queries, FeatureBlock<T>& keys, const LinearState<T>& before) {
           attend_chunk(head, mask, c, queries, keys, before, context, on_rows);
         });
  }
}

template <class T>
void LinearAttention<T>::settle_scale(const FeatureBlock<T>& keys, Index seen_by_all, Context& context,
                                      LinearState<T>& state) const {
  if (keys.first_above(state.scale, most_above_scale<T>(context), 0) >= seen_by_all) return;
  std::vector<T> scale = state.scale;
  keys.raise(scale, seen_by_all);
  state.rescale(scale);
}

// The data that the chunks of one scan share.
template <class T>
class LinearAttention<T>::Scan {
 public:
  Scan(const LinearAttention& owner, const Head<T>& head, Mask mask, const RowsAlongside& alongside, Streamed& streamed,
       Context& context, const OnChunk& on_chunk)
      : owner_(owner),
        head_(head),
        mask_(mask),
        alongside_(alongside),
        state_(streamed.state),
        absorbed_(streamed.absorbed),
        context_(context),
        on_chunk_(on_chunk),
        queries_(*owner.map_, causal_chunk),
        keys_(*owner.map_, 2 * causal_chunk),
        sums_(static_cast<size_t>(owner.map_->features())) {}

  void go(Index begin, Index end) {
    for (Index row = begin; row < end;) row += seen(row) == 0 ? rows_without_keys(row, end) : next_chunk(row, end);
  }

 private:
  // The row sees keys [0, seen); the last `fresh` of them are not in the state yet.
  Index seen(Index row) const { return mask_.visible(row, head_.K.rows()); }
  Index fresh(Index row) const { return seen(row) - absorbed_; }

  // Both return the number of rows that they processed.
  Index rows_without_keys(Index row, Index end) {
    Index rows = std::min(causal_chunk, end - row);
    while (seen(row + rows - 1) > 0) --rows;
    on_chunk_({row, rows, 0, 0}, queries_, keys_, state_);
    return rows;
  }
  Index next_chunk(Index row, Index end) {
    while (fresh(row) > causal_chunk) {  // keys that all further rows see
      map_keys(causal_chunk, causal_chunk);
      visit_and_absorb({row, 0, absorbed_, causal_chunk});
    }
    const Index all = std::min(causal_chunk, end - row);
    map_keys(fresh(row + all - 1), fresh(row));
    // The chunk ends before the first row that sees a key far above the scales.
    const Index allowed = keys_.first_above(state_.scale, most_above_scale<T>(context_), fresh(row));
    Index rows = all;
    while (fresh(row + rows - 1) > allowed) --rows;
    const Chunk chunk{row, rows, absorbed_, fresh(row + rows - 1)};
    queries_.map(context_, row_block(head_.Q, row, all), Side::query, row);
    queries_.scale_queries(context_, state_.scale);
    fetch(row + rows, end, chunk.key + chunk.keys);
    visit_and_absorb(chunk);
    return rows;
  }

  void map_keys(Index count, Index seen_by_all) {
    keys_.map(context_, row_block(head_.K, absorbed_, count), Side::key, absorbed_);
    owner_.settle_scale(keys_, seen_by_all, context_, state_);
  }

  void visit_and_absorb(const Chunk& chunk) {
    std::fill(sums_.begin(), sums_.end(), T(0));
    keys_.scale_keys(context_, state_.scale, chunk.keys, sums_);
    on_chunk_(chunk, queries_, keys_, state_);
    for (size_t f = 0; f < sums_.size(); ++f) state_.z_entries()[f] += sums_[f];
    state_.add_products(context_, row_block(keys_.block(), 0, chunk.keys), row_block(head_.V, chunk.key, chunk.keys));
    absorbed_ += chunk.keys;
  }

  // Prefetches the rows and keys of the next chunk.
  void fetch(Index row, Index end, Index key) const {
    const Index count = std::min(causal_chunk, end - row), keys = std::min(causal_chunk, head_.K.rows() - key);
    std::vector<In<T>> wanted{row_block(head_.Q, row, count), row_block(head_.K, key, keys),
                              row_block(head_.V, key, keys)};
    for (const In<T>& view : alongside_) wanted.push_back(row_block(view, row, count));
    fetch_during_products<T>(wanted);
  }

  const LinearAttention& owner_;
  const Head<T>& head_;
  const Mask mask_;
  const RowsAlongside& alongside_;
  LinearState<T>& state_;
  Index& absorbed_;
  Context& context_;
  const OnChunk& on_chunk_;
  FeatureBlock<T> queries_, keys_;
  std::vector<T> sums_;  // of the scaled features of the chunk's keys
};

template <class T>
void LinearAttention<T>::scan(const Head<T>& head, Mask mask, const RowsAlongside& alongside, Index begin, Index end,
                              Streamed& streamed, Context& context, const OnChunk& on_chunk) const {
  Scan(*this, head, mask, alongside, streamed, context, on_chunk).go(begin, end);
}

// The data of one chunk while several chunks of a scan are computed in parallel.
template <class T>
struct LinearAttention<T>::ChunkWork {
  ChunkWork(const FeatureMap<T>& map, Index dv, Chunk of)
      : chunk(of),
        queries(map, of.rows),
        keys(map, of.keys),
        state(map, dv),
        products(Matrix<T>::Zero(map.features(), dv)),
        sums(static_cast<size_t>(map.features()), T(0)) {}

  Chunk chunk;
  FeatureBlock<T> queries, keys;
  LinearState<T> state;  // before the chunk's keys
  Matrix<T> products;    // the chunk's contribution to S; `sums` is that to z
  std::vector<T> sums;
  bool above_scale = false;
};

// Gives the same bits as scan: sums the products of keys and values per chunk and adds the sums to the state in order,
// as the product kernel does. Returns false, with no row computed, if a chunk must be cut or keys must be added first.
template <class T>
bool LinearAttention<T>::scan_side_by_side(const Head<T>& head, Mask mask, Index begin, Index end, Streamed& streamed,
                                           Context& context, const OnRows& on_rows) const {
  LinearState<T>& state = streamed.state;
  Index& absorbed = streamed.absorbed;
  const Index nk = head.K.rows(), dv = head.V.cols(), seen_by_all = mask.visible(begin, nk);
  if (seen_by_all == 0 || seen_by_all - absorbed > causal_chunk) return false;
  std::vector<ChunkWork> all;
  for (Index row = begin, key = absorbed; row < end; row += causal_chunk) {
    const Index rows = std::min(causal_chunk, end - row), keys = mask.visible(row + rows - 1, nk) - key;
    all.emplace_back(*map_, dv, Chunk{row, rows, key, keys});
    key += keys;
  }
  const auto for_each_chunk = [&](auto&& work_on) {
    context.for_blocks(std::ssize(all), 1,
                       [&](Context& single, Index i, Index) { work_on(single, all[static_cast<size_t>(i)]); });
  };
  for_each_chunk([&](Context& single, ChunkWork& work) {
    const Chunk& c = work.chunk;
    work.keys.map(single, row_block(head.K, c.key, c.keys), Side::key, c.key);
    work.queries.map(single, row_block(head.Q, c.row, c.rows), Side::query, c.row);
  });
  settle_scale(all[0].keys, seen_by_all - absorbed, context, state);
  for_each_chunk([&](Context& single, ChunkWork& work) {
    const Chunk& c = work.chunk;
    work.above_scale = work.keys.first_above(state.scale, most_above_scale<T>(context), 0) < c.keys;
    if (work.above_scale) return;
    work.keys.scale_keys(single, state.scale, c.keys, work.sums);
    work.queries.scale_queries(single, state.scale);
    transposed_multiply_add<T>(single, work.keys.block(), row_block(head.V, c.key, c.keys), work.products);
  });
  if (std::any_of(all.begin(), all.end(), [](const ChunkWork& work) { return work.above_scale; })) return false;
  for (ChunkWork& work : all) {
    work.state = state;
    state.S += work.products;
    for (size_t f = 0; f < work.sums.size(); ++f) state.z_entries()[f] += work.sums[f];
    absorbed += work.chunk.keys;
  }
  for_each_chunk([&](Context& single, ChunkWork& work) {
    attend_chunk(head, mask, work.chunk, work.queries, work.keys, work.state, single, on_rows);
  });
  return true;
}

template <class T>
void LinearAttention<T>::weights(const Head<T>& head, Index i, Index j, Context& context, Out<T> block,
                                 std::span<T> log_rows, std::span<T> log_columns) const {
  if (const auto same = for_keys(head.K, context))
    return same->weights(head, i, j, context, block, log_rows, log_columns);
  FeatureBlock<T> queries(*map_, block.rows()), keys(*map_, block.cols());
  const std::vector<T> unscaled(map_->form() == Form::exponents ? static_cast<size_t>(map_->features()) : 1, T(0));
  queries.map(context, row_block(head.Q, i, block.rows()), Side::query, i);
  keys.map(context, row_block(head.K, j, block.cols()), Side::key, j);
  queries.scale_queries(context, unscaled);
  keys.scale_queries(context, unscaled);  // each key by its own largest feature: no product is summed over keys
  multiply_transposed<T>(context, queries.block(), keys.block(), block);
  std::copy_n(queries.log_scale().begin(), block.rows(), log_rows.begin());
  std::copy_n(keys.log_scale().begin(), block.cols(), log_columns.begin());
}

template <class T>
T LinearAttention<T>::stabilise_row(const Head<T>& head, Index i, Index j, Context& context, std::span<T> row,
                                    T log_row, std::span<const T> log_columns) const {
  const auto count = static_cast<Index>(row.size());
  Eigen::Map<Eigen::Array<T, 1, Eigen::Dynamic>> weight(row.data(), count);
  const Eigen::Map<const Eigen::Array<T, 1, Eigen::Dynamic>> columns(log_columns.data(), count);
  const bool exponents = map_->form() == Form::exponents;
  const T largest_column = columns.maxCoeff(), scale = log_row + largest_column;
  const Eigen::Array<T, 1, Eigen::Dynamic> scaled = weight * exponential(columns - largest_column);
  context.work.exps += static_cast<double>(count);
  // A sum this small may have lost products to underflow; a larger one is exact to rounding.
  const T suspicious = std::sqrt(std::numeric_limits<T>::min());
  if (!exponents || scaled.sum() > suspicious) {
    weight = scaled;
    return scale;
  }
  FeatureBlock<T> query(*map_, 1), keys(*map_, count);
  query.map(context, row_block(head.Q, i, 1), Side::query, i);
  keys.map(context, row_block(head.K, j, count), Side::key, j);
  for (Index c = 0; c < count; ++c) {
    auto sums = keys.block().row(c).array();
    sums += query.block().row(0).array();
    const T largest = sums.maxCoeff();
    weight[c] = query.log_scale()[0] + keys.log_scale()[static_cast<size_t>(c)] + largest +
                std::log(exponential(sums - largest).sum());
  }
  const T largest = weight.maxCoeff();
  weight = exponential(weight - largest);
  return largest;
}

template <class T>
void LinearAttention<T>::kernel(const Head<T>& head, Context& context, Out<T> block, std::span<T> log_rows,
                                std::span<T> log_columns) const {
  weights(head, 0, 0, context, block, log_rows, log_columns);
}

template <class T>
void LinearAttention<T>::diagonal(const Head<T>& head, Context& context, std::span<T> values,
                                  std::span<T> log_scale) const {
  if (const auto same = for_keys(head.K, context)) return same->diagonal(head, context, values, log_scale);
  const Index capacity = std::min(query_block, head.Q.rows());
  FeatureBlock<T> queries(*map_, capacity), keys(*map_, capacity);
  for (Index first_row = 0; first_row < head.Q.rows(); first_row += query_block) {
    const Index count = std::min(query_block, head.Q.rows() - first_row);
    queries.map(context, row_block(head.Q, first_row, count), Side::query, first_row);
    keys.map(context, row_block(head.K, first_row, count), Side::key, first_row);
    const bool exponents = map_->form() == Form::exponents;
    PerRow<T> offsets(count);
    for (Index i = 0; i < count; ++i) {
      const auto place = static_cast<size_t>(first_row + i), r = static_cast<size_t>(i);
      auto q = queries.block().row(i).array();
      const auto k = keys.block().row(i).array();
      log_scale[place] = queries.log_scale()[r] + keys.log_scale()[r];
      if (exponents) {
        q += k;
        const T largest = q.maxCoeff();
        log_scale[place] += largest;
        offsets[r] = -largest;
      } else {
        q *= k;
      }
    }
    if (exponents) {
      Context unrounded;  // half precision is that of features and products, not of the exponentials of their sums
      exponentiate<T>(unrounded, queries.block(), offsets, {});
      context.work += unrounded.work;
    }
    for (Index i = 0; i < count; ++i) values[static_cast<size_t>(first_row + i)] = queries.block().row(i).sum();
  }
}

template <class T>
void LinearAttention<T>::attention_rows(const Head<T>& head, Mask mask, Index first_row, Context& context,
                                        Out<T> A) const {
  PerRow<T> log_rows(A.rows()), log_columns(A.cols());
  weights(head, first_row, 0, context, A, log_rows, log_columns);
  for (Index i = 0; i < A.rows(); ++i) {
    const Index seen = mask.visible(first_row + i, A.cols());
    A.row(i).tail(A.cols() - seen).setZero();
    if (seen == 0) continue;
    const std::span<T> visible(A.data() + i * A.outerStride(), static_cast<size_t>(seen));
    stabilise_row(head, first_row + i, 0, context, visible, log_rows[i], first(log_columns, seen));
    const T sum = A.row(i).sum();
    if (sum == 0)
      A.row(i).setZero();
    else
      A.row(i) /= sum;
  }
}

template <class T>
void LinearAttention<T>::factors(const Head<T>& head, Mask mask, Context& context, Matrix<T>& L, Matrix<T>& R) const {
  if (mask.causal) throw Skip("a causal attention matrix has no factors of rank F: the mask is applied entry by entry");
  const Index nq = head.Q.rows(), nk = head.K.rows(), F = map_->features();
  const Index visible = mask.visible(0, nk);
  if (const auto same = for_keys(row_block(head.K, 0, visible), context))
    return same->factors(head, mask, context, L, R);
  R = Matrix<T>::Zero(nk, F);
  L = Matrix<T>::Zero(nq, F);
  if (visible == 0) return;
  LinearState<T> state(*map_, 0);  // V has no columns: only z and the scales are needed
  FeatureBlock<T> keys(*map_, visible), queries(*map_, nq);
  keys.map(context, row_block(head.K, 0, visible), Side::key, 0);
  state.absorb(context, keys, In<T>(nullptr, visible, 0, 0));
  row_block(R, 0, visible) = keys.block();  // absorb left the scaled features in place
  queries.map(context, head.Q, Side::query, 0);
  queries.scale_queries(context, state.scale);
  PerRow<T> normalisers(nq);
  Matrix<T> none(nq, 0);
  state.read(context, queries.block(), none, normalisers);
  divide_rows<T>(queries.block(), normalisers, L);
}

template class LinearAttention<float>;
template class LinearAttention<double>;

}  // namespace attnbench
