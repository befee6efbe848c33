// The engine of linear attention: one for every feature map. A = D^-1 Q' K'^T with Q' = phi(q), K' = phi(k), never
// formed.
//   S = K'^T V (F x dv),  z = K'^T 1 (F),  out_i = phi(q_i) S / phi(q_i).z            methods.md 0, H
// Keys are streamed in blocks into (S, z), then queries in blocks; causal attention goes in chunks of rows: what every
// row of the chunk sees is in the state, the rest is an explicit chunk x chunk product. Memory beyond input and output
// is O(block F + F dv) whatever n.
//
// Stability. Maps in exponent form keep one running maximum mu_f per feature over the keys: S_f and z_f are sums of
// exp(L_jf - mu_f), so z_f >= 1, and a query weighs feature f by exp(L_if + mu_f - max_f(L_if + mu_f)): its normaliser
// is at least 1 at any norm of q and k. (One maximum over all keys and features, methods.md A1, is as exact but lets
// all products underflow at |q| = |k| = 40 in float.) Per-feature factors cancel between query and key side.
#pragma once

#include <memory>

#include "harness/core/feature_map.hpp"

namespace attnbench {

template <class T>
class LinearAttention : public Approximation<T>, public Kernel<T>, public Factored<T>, public Rows<T> {
 public:
  explicit LinearAttention(std::unique_ptr<FeatureMap<T>> map) : map_(std::move(map)) {}

  void attend(const Head<T>&, Mask, Context&, Out<T> out) const override;
  Tensors state() const override { return map_->state(); }
  const Kernel<T>* kernel() const override { return this; }
  const Factored<T>* factored() const override { return this; }
  const Rows<T>* rows() const override { return this; }

  void kernel(const Head<T>&, Context&, Out<T> block, std::span<T> log_rows, std::span<T> log_columns) const override;
  void diagonal(const Head<T>&, Context&, std::span<T> values, std::span<T> log_scale) const override;
  void normalisers(const Head<T>&, Mask, Context&, std::span<T> values, std::span<T> log_scale) const override;
  void factors(const Head<T>&, Mask, Context&, Matrix<T>& L, Matrix<T>& R) const override;
  void attention_rows(const Head<T>&, Mask, Index first, Context&, Out<T> A) const override;

  // The weights of queries [i, i + nq) and keys [j, j + nk) of the head: weight = exp(log_rows + log_columns) block.
  // Entries far below the row's and column's largest features may underflow to 0: see exact_log_weights.
  void weights(const Head<T>&, Index i, Index j, Context&, Out<T> block, std::span<T> log_rows,
               std::span<T> log_columns) const;
  // Turns row i of such a block, for keys [j, j + row.size()), into weights over exp(returned log scale), recomputing
  // them as log-sum-exp over the features when the products underflowed.
  T stabilise_row(const Head<T>&, Index i, Index j, Context&, std::span<T> row, T log_row,
                  std::span<const T> log_columns) const;

 private:
  struct State;
  class Features;
  using Sink = std::function<void(Index first, Out<T> numerators, std::span<T> normalisers, std::span<T> log_scale)>;

  // The same attention with the map for these keys, when the map depends on all of them (FeatureMap::given_keys).
  std::unique_ptr<const LinearAttention> given(const In<T>& K, Context&) const;
  void stream(const Head<T>&, Mask, Context&, const Sink&) const;
  void stream_bidirectional(const Head<T>&, Mask, Context&, const Sink&) const;
  void stream_causal(const Head<T>&, Mask, Context&, const Sink&) const;
  void add_visible_in_chunk(const Head<T>&, Mask, Index first, Index absorbed, Context&, Out<T> numerators,
                            std::span<T> normalisers, std::span<T> log_scale) const;
  State absorb_all(const Head<T>&, Index keys, Context&) const;

  std::unique_ptr<FeatureMap<T>> map_;
};

}  // namespace attnbench
