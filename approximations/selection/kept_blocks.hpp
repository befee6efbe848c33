// Blocks of keys that a block of rows keeps together: the pattern of methods that score pairs of blocks. methods.md U.
#pragma once

#include <numeric>

#include "approximations/selection/chosen_keys.hpp"

namespace attnbench {

// Rows [I rows, (I + 1) rows) see, of the keys that their mask shows them, those in the blocks of kept[I].
class KeptBlocks final : public SparsePattern {
 public:
  // kept: of each block of rows, its blocks of `size` keys as runs. offset: that of the mask.
  KeptBlocks(Index rows, Index size, Index offset, std::vector<std::vector<IndexRun>> kept)
      : rows_(rows), size_(size), offset_(offset), kept_(std::move(kept)) {}

  std::vector<PatternPart> parts(Index nq, Mask) const override {
    return {{.end = nq, .tile_rows = std::min<Index>(rows_, 64)}};
  }
  void keys(size_t, Index position, Index visible, std::vector<IndexRun>& runs) const override {
    for (const IndexRun& run : kept_[static_cast<size_t>((position - offset_) / rows_)])
      runs.push_back(run_between(run.first * size_, std::min((run.first + run.count) * size_, visible)));
  }

 private:
  Index rows_, size_, offset_;
  std::vector<std::vector<IndexRun>> kept_;
};

// Blocks with the largest scores first; ties: the first block.
inline void sort_by_score(std::vector<Index>& blocks, std::span<const double> scores) {
  std::sort(blocks.begin(), blocks.end(), [&](Index a, Index b) {
    const double of_a = scores[static_cast<size_t>(a)], of_b = scores[static_cast<size_t>(b)];
    return of_a > of_b || (of_a == of_b && a < b);
  });
}

}  // namespace attnbench
