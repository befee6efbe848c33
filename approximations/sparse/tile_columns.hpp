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

  // Lays out the columns for these rows of one part of the pattern, replacing the previous layout. Then the columns of
  // each row are found in either of two ways.
  void lay(const SparsePattern& pattern, size_t part, IndexRun rows, Mask mask, Index nk);

  const std::vector<IndexRun>& runs() const { return runs_; }     // ascending within one step and residue
  const std::vector<Index>& columns() const { return columns_; }  // the column of each run's first key; then the width
  Index width() const { return columns_.back(); }

  // By row: the columns that it sees, ascending.
  void find_segments();
  std::span<const Segment> segments(Index row) const {
    const auto [begin, end] = of_rows_[static_cast<size_t>(row)];
    return {segments_.data() + begin, end - begin};
  }

  // By column, of 64 rows at most: bit r is whether row r sees it. Of a row only the first column and the end of the
  // last are kept; without a key it begins after its end.
  void find_rows();
  std::uint64_t rows_that_see(Index column) const { return rows_that_see_[static_cast<size_t>(column)]; }
  Segment extent(Index row) const { return extents_[static_cast<size_t>(row)]; }

 private:
  void take(const SparsePattern& pattern, size_t part, Index position, Index visible);
  bool move_runs();
  void unite_runs();
  size_t place_of(const IndexRun& run) const;
  Segment place(const IndexRun& run) const;
  void join(size_t first);

  // Entries [begin, end) of given_, and then of segments_. Rows that have the same runs as the row before share them.
  struct Entries {
    size_t begin = 0, end = 0;
    bool operator==(const Entries&) const = default;
  };

  std::vector<IndexRun> given_, given_before_, runs_, moved_;
  std::vector<Entries> of_rows_, of_rows_before_;
  std::vector<Index> moves_;
  std::vector<Index> columns_;
  std::vector<Segment> segments_, extents_;
  std::vector<std::uint64_t> rows_that_see_;
  bool rows_found_ = false;  // rows_that_see_ and extents_ are of this layout
};

}  // namespace attnbench
