// Scores by the softmax weights that the last queries of a head give to its keys.
#pragma once

#include <algorithm>

#include "harness/core/key_score.hpp"
#include "harness/linalg/products.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench {

// For each key the sum of the weights that the last `rows` queries give it and its neighbours, `pool` keys with it in
// the middle. Neighbours beyond the ends count as 0, and so do keys at the positions of these queries, which have no
// score.
inline std::vector<double> weights_of_last_queries(const Head<double>& head, Mask mask, Context& context, Index rows,
                                                   Index pool) {
  const Index nq = head.Q.rows(), keys = head.K.rows(), count = std::min(rows, nq), first = nq - count;
  Matrix<double> weights(count, keys);
  multiply_transposed<double>(context, row_block(head.Q, first, count), head.K, weights);
  std::vector<double> sums(static_cast<size_t>(keys), 0), scores = sums;
  for (Index r = 0; r < count; ++r) {
    softmax_within<double>(context, weights, r, 0, mask.visible(first + r, keys));
    for (Index j = 0; j < keys; ++j) sums[static_cast<size_t>(j)] += weights(r, j);
  }
  const Index before = std::clamp<Index>(first + mask.offset, 0, keys), side = pool / 2;
  for (Index j = 0; j < before; ++j)
    for (Index l = std::max<Index>(0, j - side); l <= std::min(before - 1, j + side); ++l)
      scores[static_cast<size_t>(j)] += sums[static_cast<size_t>(l)];
  return scores;
}

inline Work work_of_last_queries(const Shape& shape, Index rows) {
  const double pairs = static_cast<double>(std::min(rows, shape.nq)) * static_cast<double>(shape.nk);
  return {.flops = 2 * pairs * static_cast<double>(shape.d), .exps = pairs};
}

inline double memory_of_last_queries(const Shape& shape, Index rows) {
  return static_cast<double>(std::min(rows, shape.nq)) * static_cast<double>(shape.nk) * sizeof(double);
}

}  // namespace attnbench
