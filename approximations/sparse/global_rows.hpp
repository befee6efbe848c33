// The rows of tokens that see every key, at positions [0, g). They form a separate part: a tile that mixed them with
// other rows would gather every key.
#pragma once

#include "approximations/sparse/sparse_softmax.hpp"

namespace attnbench {

class GlobalRows {
 public:
  explicit GlobalRows(Index count) : count_(count) {}

  // Part 0 is these rows. The other parts, in tiles of tile_rows, are the rows before (negative positions) and after.
  std::vector<PatternPart> parts(Index nq, Mask mask, Index tile_rows) const {
    const Index begin = std::clamp<Index>(-mask.offset, 0, nq), end = std::clamp<Index>(count_ - mask.offset, 0, nq);
    return {{.begin = begin, .end = end},
            {.begin = 0, .end = begin, .tile_rows = tile_rows},
            {.begin = end, .end = nq, .tile_rows = tile_rows}};
  }
  Index count() const { return count_; }

 private:
  Index count_;
};

}  // namespace attnbench
