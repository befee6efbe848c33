// Pages: consecutive keys, `size` of them in each but the last. Methods that score pages keep the best ones of each row
// and attend to all keys in them. methods.md U.
//   A row that is one of the tokens keeps its own page, which counts among those kept. Under a causal mask that page is
//   the only one of which it sees a part, so that no summary of a page that the row scores has a later key in it.
#pragma once

#include "approximations/selection/chosen_keys.hpp"

namespace attnbench {

struct Pages {
  Index size = 1, keep = 1;

  Index containing(Index keys) const { return (keys + size - 1) / size; }
  // The page of a position, or -1 if none of the keys that the row sees has it.
  Index own(Index position, Index seen) const { return position >= 0 && position < seen ? position / size : -1; }

  // The keys of a row that sees `seen` keys, given a score for each page.
  template <class T>
  std::vector<IndexRun> best(std::span<const T> scores, Index position, Index seen) const {
    const Index of_row = own(position, seen);
    std::vector<Index> kept;
    for (Index page = 0; page < containing(seen); ++page)
      if (page != of_row) kept.push_back(page);
    keep_largest(kept, of_row < 0 ? keep : keep - 1, [&](Index page) { return scores[static_cast<size_t>(page)]; });
    if (of_row >= 0) kept.push_back(of_row);
    std::vector<IndexRun> runs = runs_of(kept);
    for (IndexRun& run : runs) run = run_between(run.first * size, std::min((run.first + run.count) * size, seen));
    return runs;
  }

  // The number of keys that such a row keeps, if the last page is whole.
  Index keys(Index seen, Index position) const {
    if (containing(seen) <= keep) return seen;
    const Index page = own(position, seen);
    return page < 0 ? keep * size : (keep - 1) * size + std::min(size, seen - page * size);
  }
};

// Of one attend: each row's product with a summary of `width` numbers for each page, and softmax over the keys kept.
inline Work cost_of_pages(const Pages& pages, Index width, const Shape& shape) {
  const double scored = sum_over_blocks(shape, [&](Index seen) { return pages.containing(seen); });
  const double pairs = sum_over_rows(shape, [&](Index seen, Index position) { return pages.keys(seen, position); });
  return {.flops = 2 * scored * static_cast<double>(width) + 2 * pairs * static_cast<double>(shape.d + shape.dv),
          .exps = pairs};
}

// Bytes: the summaries, and the scores and pages of the rows that are chosen for together.
inline double memory_of_pages(const Pages& pages, Index width, const Shape& shape) {
  const auto count = static_cast<double>(pages.containing(shape.nk)), rows = static_cast<double>(chosen_rows);
  const double kept = std::min(count, static_cast<double>(pages.keep));
  return count * (static_cast<double>(width) + rows) * bytes_of(shape.precision) + rows * kept * sizeof(IndexRun);
}

}  // namespace attnbench
