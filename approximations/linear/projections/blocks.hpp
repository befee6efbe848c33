// Ensembles that are drawn in blocks of d rows, the last one possibly partial.
#pragma once

#include "harness/core/projection.hpp"

namespace attnbench {

// Ordered pairs of distinct rows of one block, among the first m.
inline double pairs_in_blocks(Index m, Index block) {
  const auto pairs = [](Index rows) { return static_cast<double>(rows) * static_cast<double>(rows - 1); };
  return static_cast<double>(m / block) * pairs(block) + pairs(m % block);
}

// What one orthogonal block draws its directions from, and these: ensembles that share them differ in the norms alone.
inline Generator directions_of_block(const Draw& draw, Index d, Index block) {
  return draw.streams.stream("projection", "orthogonal", "directions", d, draw.head, draw.replicate, block);
}
inline Matrix<double> haar_of_block(const Draw& draw, Index d, Index block) {
  auto directions = directions_of_block(draw, d, block);
  return haar_orthogonal(directions, d);
}

// m rows of dimension d from blocks of that many rows: make(b) is block b, block x d or larger.
template <class MakeBlock>
Matrix<double> stacked_blocks(Index m, Index d, Index block, const MakeBlock& make) {
  Matrix<double> W(m, d);
  for (Index first = 0; first < m; first += block) {
    const Index count = std::min(block, m - first);
    W.middleRows(first, count) = make(first / block).topLeftCorner(count, d);
  }
  return W;
}

}  // namespace attnbench
