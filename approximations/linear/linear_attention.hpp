// The engine of linear attention, shared by all feature maps. It never forms A = D^-1 Q' K'^T, Q' = phi(q),
// K' = phi(k).
//   S = K'^T V (F x dv),  z = K'^T 1 (F),  out_i = phi(q_i) S / phi(q_i).z            methods.md 0, H
// Keys are streamed in blocks into (S, z), then queries in blocks. Causal attention proceeds in chunks of rows: the
// state holds the keys that every row of the chunk sees, and an explicit chunk x chunk product adds the others. Memory
// beyond input and output is O(block F + F dv) at every n.
//
// Stability. Maps in exponent form keep one running maximum mu_f per feature over the keys: S_f and z_f are sums of
// exp(L_jf - mu_f), so z_f >= 1, and a query weighs feature f by exp(L_if + mu_f - max_f(L_if + mu_f)): its normaliser
// is at least 1 at any norm of q and k. (One maximum over all keys and features, methods.md A1, is exact too, but all
// products underflow at |q| = |k| = 40 in float.) Per-feature factors cancel between query and key side. The rows of a
// causal chunk share scales, which are maxima over keys that all of them see. If a later key of the chunk is far above
// these scales, the chunk ends before it. So no row depends on a later token, not even through rounding.
//
// Gradients (methods.md H). With G = dL/d out, g~_i = G_i / den_i and gamma_i = -G_i.out_i / den_i,
//   d phi(q_i) = S_i g~_i + gamma_i z_i,   R_j = sum_(i sees j) phi(q_i) g~_i^T,   zeta_j = sum_(i sees j) gamma_i
//   phi(q_i) d phi(k_j) = R_j v_j + zeta_j,         d v_j = R_j^T phi(k_j)
// and the map pulls d phi back to q and k. Causal: a second forward pass streams S, a backward pass streams R, both in
// the same chunks; only the scales of the chunks are stored.
#pragma once

#include <functional>
#include <memory>

#include "approximations/linear/linear_state.hpp"

namespace attnbench {

// How the causal backward pass obtains S_i. recompute: by a second forward pass. subtract: from the final state by
// subtracting keys, as published libraries do to save that pass; the differences lose what the sums rounded away.
enum class CausalBackward { recompute, subtract };
inline Parameter causal_backward_parameter() {
  return Parameter::choice("backward", "recompute",
                           "how the causal backward pass comes by earlier states: streaming them again, or taking keys "
                           "out of the last one, which loses digits as n grows",
                           {"recompute", "subtract"})
      .as_published()
      .as_numerics();  // of attend; of gradients it loses digits
}
inline CausalBackward causal_backward(const Params& params) {
  return params.text("backward") == "subtract" ? CausalBackward::subtract : CausalBackward::recompute;
}

template <class T>
class LinearAttention : public Approximation<T>,
                        public Kernel<T>,
                        public Factored<T>,
                        public Rows<T>,
                        public Differentiable<T> {
 public:
  explicit LinearAttention(std::unique_ptr<FeatureMap<T>> map,
                           CausalBackward causal_backward = CausalBackward::recompute)
      : map_(std::move(map)), causal_backward_(causal_backward) {}

  void attend(const Head<T>&, Mask, Context&, Out<T> out) const override;
  Tensors state() const override { return map_->state(); }
  const Kernel<T>* kernel() const override { return this; }
  const Factored<T>* factored() const override { return this; }
  const Rows<T>* rows() const override { return this; }
  const Differentiable<T>* differentiable() const override {
    return map_->differentiable() && !map_->depends_on_keys() ? this : nullptr;
  }
  std::unique_ptr<Decoder<T>> decoder(const Shape&) const override;

  void kernel(const Head<T>&, Context&, Out<T> block, std::span<T> log_rows, std::span<T> log_columns) const override;
  void diagonal(const Head<T>&, Context&, std::span<T> values, std::span<T> log_scale) const override;
  void normalisers(const Head<T>&, Mask, Context&, std::span<T> values, std::span<T> log_scale) const override;
  void factors(const Head<T>&, Mask, Context&, Matrix<T>& L, Matrix<T>& R) const override;
  void attention_rows(const Head<T>&, Mask, Index first, Context&, Out<T> A) const override;
  void forward(const Head<T>&, Mask, Context&, Out<T> out, std::vector<T>& saved) const override;
  void backward(const Head<T>&, Mask, const In<T>& out, const std::vector<T>& saved, const In<T>& G, Context&,
                Gradients<T>) const override;

  // The weights of queries [i, i + nq) and keys [j, j + nk) of the head: weight = exp(log_rows + log_columns) block.
  // Entries far below the row's and column's largest features may underflow to 0: see stabilise_row.
  void weights(const Head<T>&, Index i, Index j, Context&, Out<T> block, std::span<T> log_rows,
               std::span<T> log_columns) const;
  // Turns row i of such a block, for keys [j, j + row.size()), into weights divided by exp(returned log scale). If the
  // products underflowed, recomputes them as log-sum-exp over the features.
  T stabilise_row(const Head<T>&, Index i, Index j, Context&, std::span<T> row, T log_row,
                  std::span<const T> log_columns) const;

 private:
  // Rows [row, row + rows) all see keys [0, key), and each sees some of [key, key + keys). If rows = 0, all rows from
  // `row` on see the keys. The blocks of a chunk that was cut are padded with unused queries and zero keys: products
  // then have the same shape, and the same bits, as those of an uncut chunk.
  struct Chunk {
    Index row, rows, key, keys;
  };
  // The state of the first `absorbed` keys.
  struct Streamed {
    LinearState<T> state;
    Index absorbed = 0;
  };
  // Called with each chunk of a scan. Queries and keys are scaled by the state; it does not contain the keys yet.
  using OnChunk = std::function<void(const Chunk&, FeatureBlock<T>& queries, FeatureBlock<T>& keys, LinearState<T>&)>;
  // Called with the results of consecutive rows from `first` on.
  using OnRows = std::function<void(Index first, Out<T> numerators, std::span<T> normalisers, std::span<T> log_scale)>;
  // Other matrices with nq rows that are read or written along with the queries, so they are prefetched with them.
  using RowsAlongside = std::vector<In<T>>;
  class Scan;
  class Backward;
  struct ChunkWork;

  // This attention with its map fitted to these keys; null unless the map depends on all keys (FeatureMap::given_keys).
  std::unique_ptr<const LinearAttention> for_keys(const In<T>& K, Context&) const;
  void stream(const Head<T>&, Mask, const RowsAlongside&, Context&, const OnRows&) const;
  void stream_bidirectional(const Head<T>&, Mask, const RowsAlongside&, Context&, const OnRows&) const;
  void stream_causal(const Head<T>&, Mask, const RowsAlongside&, Context&, const OnRows&) const;
  // Calls on_chunk for the chunks of rows [begin, end) of a causal mask, in order.
  void scan(const Head<T>&, Mask, const RowsAlongside&, Index begin, Index end, Streamed&, Context&,
            const OnChunk& on_chunk) const;
  bool scan_side_by_side(const Head<T>&, Mask, Index begin, Index end, Streamed&, Context&, const OnRows&) const;
  void attend_chunk(const Head<T>&, Mask, const Chunk&, FeatureBlock<T>& queries, FeatureBlock<T>& keys,
                    const LinearState<T>& before, Context&, const OnRows&) const;
  // If a key that all rows of a chunk see is far above the state's scales, raises the scales.
  void settle_scale(const FeatureBlock<T>& keys, Index seen_by_all, Context&, LinearState<T>&) const;

  std::unique_ptr<FeatureMap<T>> map_;
  CausalBackward causal_backward_;
};

}  // namespace attnbench
