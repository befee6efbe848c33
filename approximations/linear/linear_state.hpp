// The data of linear attention while it streams: the features of one block of rows, and the state (S, z) over the keys
// absorbed so far. Shared by the forward pass, the gradients and decoding.
//
// Features in exponent form are stored as exp(exponent - scale). Keys have one scale mu_f per feature, the running
// maximum; queries have one per row, c_i = max_f (exponent_if + mu_f). Per-feature factors cancel between the sides.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "harness/core/feature_map.hpp"

namespace attnbench {

// Rows of a chunk of causal attention.
constexpr Index causal_chunk = 64;

// The features of at most `capacity` rows.
template <class T>
class FeatureBlock {
 public:
  FeatureBlock(const FeatureMap<T>& map, Index capacity)
      : map_(map),
        block_(std::max<Index>(1, capacity), map.features()),  // memory that maps may point into, also without rows
        log_scale_(static_cast<size_t>(capacity)) {}

  // Maps X, whose first row is token `first`, without scaling.
  void map(Context&, const In<T>& X, Side, Index first);

  // Raises scales (LinearState::scale) to the largest of the first `count` keys.
  void raise(std::vector<T>& scale, Index count) const;
  // The first key, from `begin` on, with an exponent that exceeds its scale by more than `most`; the number of keys if
  // no key has one.
  Index first_above(const std::vector<T>& scale, T most, Index begin) const;
  // Divides keys by the exponentials of these scales and sets the keys from `count` on to 0. Adds the column sums to
  // column_sum, unless it is empty.
  void scale_keys(Context&, const std::vector<T>& scale, Index count, std::span<T> column_sum);
  // Scales queries for products with keys that have these scales; log_scale then holds the remaining log factors.
  void scale_queries(Context&, const std::vector<T>& scale);

  Out<T> block() { return corner(block_, count_, block_.cols()); }
  std::span<T> log_scale() { return {log_scale_.data(), static_cast<size_t>(count_)}; }

 private:
  const FeatureMap<T>& map_;
  Matrix<T> block_;
  std::vector<T> log_scale_;
  Index count_ = 0;
};

// S = sum_j phi(k_j) v_j^T (F x dv) and z = sum_j phi(k_j) (F), divided by exp(scale). There is one scale per feature
// for maps in exponent form, and one in total for maps in value form.
template <class T>
struct LinearState {
  LinearState(const FeatureMap<T>& map, Index dv);

  bool empty() const { return scale[0] == -std::numeric_limits<T>::infinity(); }
  std::span<T> z_entries() { return {z.data(), static_cast<size_t>(z.size())}; }

  // Rescales the sums to new scales, which are not below the old ones.
  void rescale(const std::vector<T>& fresh);
  // Adds unscaled keys with their values. Overwrites the block with the scaled keys.
  void absorb(Context&, FeatureBlock<T>& keys, const In<T>& V);
  // Adds products of keys that are scaled already and included in z.
  void add_products(Context&, const Out<T>& keys, const In<T>& V);
  void merge(LinearState& other);
  // numerators_i = phi(q_i) S, normalisers_i = phi(q_i).z for queries scaled to this state.
  void read(Context&, const Out<T>& queries, Out<T> numerators, std::span<T> normalisers) const;

  Form form;
  Matrix<T> S;  // F x dv
  Matrix<T> z;  // F x 1
  std::vector<T> scale;
};

// The state over the head's first `keys` keys, streamed in blocks into at most 8 partial sums. They are added in key
// order at every number of threads.
template <class T>
LinearState<T> absorb_all(const FeatureMap<T>& map, const Head<T>& head, Index keys, Context&);

// out_i = numerators_i / normalisers_i, or 0 if the normaliser is 0.
template <class T>
void divide_rows(const Out<T>& numerators, std::span<const T> normalisers, Out<T> out);

}  // namespace attnbench
