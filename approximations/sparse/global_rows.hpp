// The rows of tokens that see every key: those at positions [0, g). They are a part of their own, so that no tile of
// other rows gathers every key for their sake.
#pragma once

#include "approximations/sparse/sparse_softmax.hpp"

namespace attnbench {

class GlobalRows {
 public:
  explicit GlobalRows(Index count) : count_(count) {}

  // Part 0 is those rows; the others, in such tiles, are those before (at negative positions) and those behind.
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
