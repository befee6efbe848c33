// Weighted sums of consecutive rows: pooling, strided convolution and landmarks.            methods.md E
//   pooled_a = sum over segment a of w_t x_(begin_a + t);  w = 1 / length is the mean
#pragma once

#include <algorithm>
#include <span>

#include "harness/linalg/context.hpp"

namespace attnbench {

// Rows [0, rows) cut into `count` segments. Segment a begins at a rows / count (even) or at a stride; with a stride the
// last segment may be shorter.
struct Segments {
  Index rows, count, stride = 0;  // 0: even

  static Segments even(Index rows, Index count) { return {rows, count}; }
  static Segments strided(Index rows, Index stride) { return {rows, (rows + stride - 1) / stride, stride}; }
  Index begin(Index a) const { return stride > 0 ? std::min(a * stride, rows) : a * rows / count; }
  Index end(Index a) const { return begin(a + 1); }
};

// pooled is segments.count x X.cols(). weights: the weights of the rows of a segment; empty for means. Rows of X from
// X.rows() on count as 0. O(rows cols) time.
template <class T>
void pool(Context& context, const In<T>& X, const Segments& segments, std::span<const T> weights, Out<T> pooled);

}  // namespace attnbench
