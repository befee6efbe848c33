// Which rows of a causal head read the state of a recurrence, and when.
#pragma once

#include "harness/core/problem.hpp"

namespace attnbench {

// Row i reads after token i + offset. Rows before `begin` see no token; those from `end` on see all `tokens`, and read
// the last state. tokens: as many as any row sees.
struct ReadingRows {
  Index tokens, begin, end, offset;

  ReadingRows(Index nq, Index nk, Mask mask)
      : tokens(nq == 0 ? 0 : mask.visible(nq - 1, nk)),
        begin(std::clamp<Index>(-mask.offset, 0, nq)),
        end(std::clamp<Index>(tokens - mask.offset, begin, nq)),
        offset(mask.offset) {
    if (tokens == 0) begin = end = nq;
  }
  // The first row that reads at token t or later.
  Index of(Index t) const { return std::clamp(t - offset, begin, end); }
};

}  // namespace attnbench
