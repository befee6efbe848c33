// The columns of a tile of the sparse engine: the keys that any of its rows sees, side by side, and which of them each
// row sees.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "approximations/sparse/sparse_softmax.hpp"

namespace attnbench {

class TileColumns {
 public:
  struct Segment {
    Index begin = 0, end = 0;
    bool operator==(const Segment&) const = default;
  };

  // Lays out the columns for these rows of one part of the pattern, replacing the previous layout.
  void lay(const SparsePattern& pattern, size_t part, IndexRun rows, Mask mask, Index nk);

  const std::vector<IndexRun>& runs() const { return runs_; }     // ascending within one step and residue
  const std::vector<Index>& columns() const { return columns_; }  // the column of each run's first key; then the width
  Index width() const { return columns_.back(); }
  std::span<const Segment> segments(Index row) const {  // of the columns that a row of the tile sees, ascending
    const auto [begin, end] = of_rows_[static_cast<size_t>(row)];
    return {segments_.data() + begin, end - begin};
  }
  // For each column the rows of the tile that see it: bit r is row r, of 64 at most.
  const std::vector<std::uint64_t>& rows_that_see();

 private:
  void take(const SparsePattern& pattern, size_t part, Index position, Index visible);
  void unite_runs();
  size_t place_of(const IndexRun& run) const;
  void place();
  void join(size_t first);

  // Entries [begin, end) of given_, and then of segments_. Rows that have the same runs as the row before share them.
  struct Entries {
    size_t begin = 0, end = 0;
    bool operator==(const Entries&) const = default;
  };

  std::vector<IndexRun> given_, runs_;
  std::vector<Entries> of_rows_;
  std::vector<Index> columns_;
  std::vector<Segment> segments_;
  std::vector<std::uint64_t> rows_that_see_;
};

}  // namespace attnbench
