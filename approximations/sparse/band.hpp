// The band that local patterns see: row i sees keys j with |i + offset - j| <= window, and its mask. methods.md F.
#pragma once

#include <algorithm>

#include "harness/core/problem.hpp"

namespace attnbench {

constexpr Index band_rows = 64;  // rows gathered at once: their windows overlap, so their keys are one range

struct KeyRange {
  Index begin = 0, end = 0;
  Index size() const { return std::max<Index>(0, end - begin); }
};

// The keys that row i sees.
inline KeyRange band_of_row(Index i, Index window, Mask mask, Index nk) {
  const Index centre = i + mask.offset;
  const Index end = std::min(mask.visible(i, nk), std::max<Index>(0, centre + window + 1));
  return {std::clamp<Index>(centre - window, 0, end), end};
}

// The smallest range of keys that contains all keys that rows [first, first + count) see.
inline KeyRange band_of_rows(Index first, Index count, Index window, Mask mask, Index nk) {
  const KeyRange top = band_of_row(first, window, mask, nk), bottom = band_of_row(first + count - 1, window, mask, nk);
  return {std::min(top.begin, bottom.begin), std::max(top.end, bottom.end)};
}

}  // namespace attnbench
