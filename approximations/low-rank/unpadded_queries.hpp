// The queries that a method may average or choose from.
#pragma once

#include <algorithm>

#include "harness/core/problem.hpp"

namespace attnbench {

// The number of queries before the first padded position; all nq if every query is at one.
inline Index unpadded_queries(Index nq, const Mask& mask) {
  if (mask.keys < 0) return nq;
  const Index unpadded = std::clamp<Index>(mask.keys - mask.offset, 0, nq);
  return unpadded > 0 ? unpadded : nq;
}

}  // namespace attnbench
