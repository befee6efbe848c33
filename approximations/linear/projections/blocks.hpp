// Ensembles that are drawn in blocks of d rows, the last one possibly partial.
#pragma once

#include "harness/core/projection.hpp"

namespace attnbench {

// Ordered pairs of distinct rows of one block, among the first m.
inline double pairs_in_blocks(Index m, Index block) {
  const auto pairs = [](Index rows) { return static_cast<double>(rows) * static_cast<double>(rows - 1); };
  const Index whole = m / block;
  return static_cast<double>(whole) * pairs(block) + pairs(m % block);
}

// The random stream of orthogonal ensembles: for each block a Haar matrix, then d norms. Ensembles that draw both
// therefore differ in the norms alone. One stream per draw, because seeding costs as much as half a block of 16.
inline Generator orthogonal_stream(const Draw& draw, Index d) {
  return draw.streams.stream("projection", "orthogonal", d, draw.head, draw.replicate);
}

// m rows of dimension d, assembled from blocks of `block` rows. make() returns the next block, block x d or larger.
template <class MakeBlock>
Matrix<double> stacked_blocks(Index m, Index d, Index block, const MakeBlock& make) {
  Matrix<double> W(m, d);
  for (Index first = 0; first < m; first += block) {
    const Index count = std::min(block, m - first);
    W.middleRows(first, count) = make().topLeftCorner(count, d);
  }
  return W;
}

}  // namespace attnbench
