// The backward pass of linear attention: see linear_attention.hpp for the formulae.
#include <cmath>

#include "approximations/linear/linear_attention.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench {

namespace {
constexpr Index block_rows = 256;
}  // namespace

template <class T>
void LinearAttention<T>::forward(const Head<T>& head, Mask mask, Context& context, Out<T> out,
                                 std::vector<T>& saved) const {
  const Index nq = head.Q.rows();
  saved.resize(static_cast<size_t>(2 * nq));  // normalisers, then their log scales
  stream(head, mask, {out}, context,
         [&](Index first_row, Out<T> numerators, std::span<T> normalisers, std::span<T> log_scale) {
           std::copy(normalisers.begin(), normalisers.end(), saved.begin() + first_row);
           std::copy(log_scale.begin(), log_scale.end(), saved.begin() + nq + first_row);
           divide_rows<T>(numerators, normalisers, row_block(out, first_row, numerators.rows()));
         });
}

// The data that the steps of one backward pass share.
template <class T>
class LinearAttention<T>::Backward {
 public:
  Backward(const LinearAttention& owner, const Head<T>& head, Mask mask, const In<T>& out, const std::vector<T>& saved,
           const In<T>& G, Context& context, Gradients<T> gradients, Index block)
      : owner_(owner),
        map_(*owner.map_),
        head_(head),
        mask_(mask),
        out_(out),
        saved_(saved),
        G_(G),
        context_(context),
        gradients_(gradients),
        R_(Matrix<T>::Zero(map_.features(), head.V.cols())),
        zeta_(Matrix<T>::Zero(map_.features(), 1)),
        divided_(block, head.V.cols()),
        gamma_(static_cast<size_t>(block)),
        features_(block, map_.features()),
        log_scale_(static_cast<size_t>(block)) {
    // The passes write all other rows.
    const Index nq = head.Q.rows(), unseen = head.K.rows() - (nq == 0 ? 0 : mask.visible(nq - 1, head.K.rows()));
    gradients_.K.bottomRows(unseen).setZero();
    gradients_.V.bottomRows(unseen).setZero();
  }

  void bidirectional() {
    const Index nq = head_.Q.rows(), keys = mask_.visible(0, head_.K.rows());
    const LinearState<T> state = absorb_all<T>(*owner_.map_, head_, keys, context_);
    if (state.empty()) return no_gradients();
    FeatureBlock<T> block(map_, block_rows);
    for (Index i = 0; i < nq; i += block_rows) {
      const Index count = std::min(block_rows, nq - i);
      map_queries(block, state.scale, i, count);
      const auto d_features = corner(features_, count, map_.features());
      multiply_transposed<T>(context_, divided(count), state.S, d_features);
      add_rank_one(gamma(count), state.z, d_features);
      remember(block.block(), count);
      pull_queries(block, d_features, i);
    }
    for (Index j = 0; j < keys; j += block_rows) {
      const Index count = std::min(block_rows, keys - j);
      block.map(context_, row_block(head_.K, j, count), Side::key, j);
      block.scale_keys(context_, state.scale, count, {});
      const auto d_features = corner(features_, count, map_.features());
      from_later_rows(block.block(), j, d_features);
      pull_keys(block, state.scale, d_features, j);
    }
  }

  void causal_by_recomputation() {
    std::vector<Chunk> chunks;
    std::vector<std::vector<T>> scales;
    Streamed streamed{LinearState<T>(map_, head_.V.cols())};
    owner_.scan(head_, mask_, {G_, out_, gradients_.Q}, 0, head_.Q.rows(), streamed, context_,
                [&](const Chunk& c, FeatureBlock<T>& queries, FeatureBlock<T>& keys, LinearState<T>& state) {
                  chunks.push_back(c);
                  scales.push_back(state.scale);
                  if (c.rows == 0) return;
                  if (c.key + c.keys == 0) return void(row_block(gradients_.Q, c.row, c.rows).setZero());
                  divide(c.row, c.rows, queries.log_scale());
                  queries_of(c, queries, keys, state);
                });
    FeatureBlock<T> queries(map_, block_rows), keys(map_, block_rows);
    for (size_t t = chunks.size(); t-- > 0;) {
      const Chunk& c = chunks[t];
      if (c.keys == 0 && c.key == 0) continue;
      if (t + 1 < chunks.size()) move_to(scales[t], scales[t + 1]);
      if (t > 0) fetch(chunks[t - 1]);
      map_chunk(c, scales[t], queries, keys);
      keys_of(c, scales[t], queries, keys);
    }
  }

  // One backward pass: starts from the state after all keys and subtracts each chunk's keys.
  void causal_by_subtraction() {
    LinearState<T> state =
        absorb_all<T>(*owner_.map_, head_, mask_.visible(head_.Q.rows() - 1, head_.K.rows()), context_);
    if (state.empty()) return no_gradients();
    FeatureBlock<T> queries(map_, block_rows), keys(map_, block_rows);
    const auto chunks = uncut_chunks();
    for (auto c = chunks.rbegin(); c != chunks.rend(); ++c) {
      map_chunk(*c, state.scale, queries, keys);
      state.add_products(context_, keys.block(), Matrix<T>(-row_block(head_.V, c->key, c->keys)));
      for (Index j = 0; j < c->keys; ++j) state.z -= keys.block().row(j).transpose();
      if (c->rows > 0) queries_of(*c, queries, keys, state);
      keys_of(*c, state.scale, queries, keys);
    }
  }

 private:
  void no_gradients() {
    for (Out<T>* X : {&gradients_.Q, &gradients_.K, &gradients_.V}) X->setZero();
  }

  Out<T> divided(Index count) { return corner(divided_, count, divided_.cols()); }
  std::span<T> gamma(Index count) { return {gamma_.data(), static_cast<size_t>(count)}; }

  // The chunks of a scan in which no chunk is cut.
  std::vector<Chunk> uncut_chunks() const {
    const Index nq = head_.Q.rows(), nk = head_.K.rows();
    std::vector<Chunk> chunks;
    Index absorbed = 0;
    const auto add = [&](Index row, Index rows, Index keys) {
      chunks.push_back({row, rows, absorbed, keys});
      absorbed += keys;
    };
    for (Index row = 0; row < nq; row += causal_chunk) {
      const Index rows = std::min(causal_chunk, nq - row);
      while (mask_.visible(row, nk) - absorbed > causal_chunk) add(row, 0, causal_chunk);
      add(row, rows, mask_.visible(row + rows - 1, nk) - absorbed);
    }
    return chunks;
  }

  // Maps and scales rows [i, i + count), and computes their g~ and gamma relative to the same scales.
  void map_queries(FeatureBlock<T>& block, const std::vector<T>& scale, Index i, Index count) {
    block.map(context_, row_block(head_.Q, i, count), Side::query, i);
    block.scale_queries(context_, scale);
    divide(i, count, block.log_scale());
  }

  void divide(Index i, Index count, std::span<const T> log_scale) {
    const auto nq = static_cast<size_t>(head_.Q.rows());
    for (Index r = 0; r < count; ++r) {
      const auto row = static_cast<size_t>(i + r), local = static_cast<size_t>(r);
      const T normaliser = saved_[row] * std::exp(saved_[nq + row] - log_scale[local]);
      const T inverse = normaliser == 0 ? T(0) : 1 / normaliser;
      divided_.row(r) = inverse * G_.row(i + r);
      gamma_[local] = -inverse * G_.row(i + r).dot(out_.row(i + r));
    }
  }

  void map_chunk(const Chunk& c, const std::vector<T>& scale, FeatureBlock<T>& queries, FeatureBlock<T>& keys) {
    keys.map(context_, row_block(head_.K, c.key, c.keys), Side::key, c.key);
    keys.scale_keys(context_, scale, c.keys, {});
    if (c.rows > 0) map_queries(queries, scale, c.row, c.rows);
  }

  void fetch(const Chunk& c) {
    const auto rows_of = [&](const In<T>& X) { return row_block(X, c.row, c.rows); };
    const auto keys_of_chunk = [&](const In<T>& X) { return row_block(X, c.key, c.keys); };
    fetch_during_products<T>({rows_of(head_.Q), rows_of(G_), rows_of(out_), keys_of_chunk(head_.K),
                              keys_of_chunk(head_.V), keys_of_chunk(gradients_.K), keys_of_chunk(gradients_.V)});
  }

  // X_if += a_i b_f.
  static void add_rank_one(std::span<const T> a, const Matrix<T>& b, Out<T> X) {
    for (Index i = 0; i < X.rows(); ++i) X.row(i) += a[static_cast<size_t>(i)] * b.col(0).transpose();
  }

  // R += phi(q)^T g~, zeta += phi(q)^T gamma.
  void remember(const Out<T>& queries, Index count) {
    transposed_multiply_add<T>(context_, queries, divided(count), R_);
    transposed_multiply_add<T>(context_, queries, In<T>(gamma_.data(), count, 1, 1), zeta_);
  }

  // Rescales R and zeta from a later chunk's scales to this chunk's, which are not larger.
  void move_to(const std::vector<T>& scale, const std::vector<T>& later) {
    for (size_t f = 0; f < scale.size(); ++f) {
      if (scale[f] == later[f]) continue;
      const T factor = std::exp(scale[f] - later[f]);
      if (map_.form() == Form::exponents) {
        R_.row(static_cast<Index>(f)) *= factor;
        zeta_(static_cast<Index>(f), 0) *= factor;
      } else {
        R_ *= factor;
        zeta_ *= factor;
      }
    }
  }

  // Gradients with respect to the weights between a chunk's rows and keys, g~_i.v_j + gamma_i; 0 if masked.
  Matrix<T> pair_gradients(const Chunk& c) {
    Matrix<T> P(c.rows, c.keys);
    multiply_transposed<T>(context_, divided(c.rows), row_block(head_.V, c.key, c.keys), P);
    for (Index i = 0; i < c.rows; ++i) P.row(i).array() += gamma_[static_cast<size_t>(i)];
    hide(c, P);
    return P;
  }
  void hide(const Chunk& c, Matrix<T>& X) const {
    for (Index i = 0; i < c.rows; ++i)
      X.row(i).tail(c.keys - (mask_.visible(c.row + i, head_.K.rows()) - c.key)).setZero();
  }

  // dQ of a chunk. Its blocks may hold more rows than the chunk has.
  void queries_of(const Chunk& c, FeatureBlock<T>& queries, FeatureBlock<T>& keys, const LinearState<T>& state) {
    const auto d_features = corner(features_, c.rows, map_.features());
    multiply_transposed<T>(context_, divided(c.rows), state.S, d_features);
    multiply_add<T>(context_, pair_gradients(c), row_block(keys.block(), 0, c.keys), d_features);
    add_rank_one(gamma(c.rows), state.z, d_features);
    pull_queries(queries, d_features, c.row);
  }

  // dK and dV of a chunk. Then adds its queries to R and zeta.
  void keys_of(const Chunk& c, const std::vector<T>& scale, FeatureBlock<T>& queries, FeatureBlock<T>& keys) {
    const auto d_features = corner(features_, c.keys, map_.features());
    from_later_rows(keys.block(), c.key, d_features);
    if (c.rows > 0) {
      Matrix<T> weights(c.rows, c.keys);
      multiply_transposed<T>(context_, queries.block(), keys.block(), weights);
      hide(c, weights);
      transposed_multiply_add<T>(context_, weights, divided(c.rows), row_block(gradients_.V, c.key, c.keys));
      transposed_multiply_add<T>(context_, pair_gradients(c), queries.block(), d_features);
      remember(queries.block(), c.rows);
    }
    pull_keys(keys, scale, d_features, c.key);
  }

  // The contribution of later rows, which see all of these keys and are in R and zeta.
  void from_later_rows(const Out<T>& keys, Index j, Out<T> d_features) {
    const Index count = keys.rows();
    multiply_transposed<T>(context_, row_block(head_.V, j, count), R_, d_features);
    d_features.rowwise() += zeta_.col(0).transpose();
    multiply<T>(context_, keys, R_, row_block(gradients_.V, j, count));
  }

  // Overwrites d_features. The output does not depend on a query's log scale.
  void pull_queries(FeatureBlock<T>& queries, Out<T> d_features, Index i) {
    const Index count = d_features.rows();
    const auto block = row_block(queries.block(), 0, count);
    if (map_.form() == Form::exponents) d_features.array() *= block.array();
    std::fill_n(log_scale_.begin(), count, T(0));
    map_.pullback(context_, row_block(head_.Q, i, count), Side::query, i, block, d_features,
                  {log_scale_.data(), static_cast<size_t>(count)}, row_block(gradients_.Q, i, count));
  }

  void pull_keys(FeatureBlock<T>& keys, const std::vector<T>& scale, Out<T> d_features, Index j) {
    const Index count = d_features.rows();
    auto block = keys.block();
    for (Index r = 0; r < count; ++r) {
      auto row = d_features.row(r).array();
      auto features = block.row(r).array();
      const auto local = static_cast<size_t>(r);
      if (map_.form() == Form::exponents) {
        row *= features;
        log_scale_[local] = row.sum();
        continue;
      }
      log_scale_[local] = (row * features).sum();
      const T factor = std::exp(keys.log_scale()[local] - scale[0]);
      if (factor == 1) continue;
      row *= factor;
      if (factor > 0) features /= factor;  // restores the map's values; if their weight is 0, so is the gradient
    }
    map_.pullback(context_, row_block(head_.K, j, count), Side::key, j, block, d_features,
                  {log_scale_.data(), static_cast<size_t>(count)}, row_block(gradients_.K, j, count));
  }

  const LinearAttention& owner_;
  const FeatureMap<T>& map_;
  const Head<T>& head_;
  Mask mask_;
  const In<T>& out_;
  const std::vector<T>& saved_;
  const In<T>& G_;
  Context& context_;
  Gradients<T> gradients_;
  Matrix<T> R_, zeta_;  // F x dv, F x 1, relative to the scales of the last chunk
  Matrix<T> divided_;   // g~
  std::vector<T> gamma_;
  Matrix<T> features_;        // d phi
  std::vector<T> log_scale_;  // d log_scale
};

template <class T>
void LinearAttention<T>::backward(const Head<T>& head, Mask mask, const In<T>& out, const std::vector<T>& saved,
                                  const In<T>& G, Context& context, Gradients<T> gradients) const {
  Backward pass(*this, head, mask, out, saved, G, context, gradients, block_rows);
  if (!mask.causal)
    pass.bidirectional();
  else if (causal_backward_ == CausalBackward::recompute)
    pass.causal_by_recomputation();
  else
    pass.causal_by_subtraction();
}

template void LinearAttention<float>::forward(const Head<float>&, Mask, Context&, Out<float>,
                                              std::vector<float>&) const;
template void LinearAttention<double>::forward(const Head<double>&, Mask, Context&, Out<double>,
                                               std::vector<double>&) const;
template void LinearAttention<float>::backward(const Head<float>&, Mask, const In<float>&, const std::vector<float>&,
                                               const In<float>&, Context&, Gradients<float>) const;
template void LinearAttention<double>::backward(const Head<double>&, Mask, const In<double>&,
                                                const std::vector<double>&, const In<double>&, Context&,
                                                Gradients<double>) const;

}  // namespace attnbench
