#include "approximations/sparse/tile_columns.hpp"

#include <algorithm>
#include <limits>

namespace attnbench {

namespace {

Index residue(const IndexRun& run) { return run.step == 1 ? 0 : run.first % run.step; }
// A division takes as long as all else that is done for a row.
Index steps(Index distance, Index step) { return step == 1 ? distance : distance / step; }
// Sorts runs of the same step and residue next to each other.
bool before(const IndexRun& a, const IndexRun& b) {
  if (a.step != b.step) return a.step < b.step;
  if (const Index of_a = residue(a), of_b = residue(b); of_a != of_b) return of_a < of_b;
  return a.first < b.first;
}

// Whether `run` overlaps or continues `into`, which then becomes both.
bool unite(IndexRun& into, const IndexRun& run) {
  const Index end = into.first + into.count * into.step, own_end = run.first + run.count * run.step;
  if (run.step != into.step || residue(run) != residue(into) || run.first > end || into.first > own_end) return false;
  into.first = std::min(into.first, run.first);
  into.count = steps(std::max(end, own_end) - into.first, into.step);
  return true;
}

bool same(const IndexRun& a, const IndexRun& b) { return a.first == b.first && a.count == b.count && a.step == b.step; }

}  // namespace

void TileColumns::lay(const SparsePattern& pattern, size_t part, IndexRun rows, Mask mask, Index nk) {
  given_.swap(given_before_);
  of_rows_.swap(of_rows_before_);
  given_.clear();
  of_rows_.clear();
  for (Index r = 0; r < rows.count; ++r) {
    const Index i = rows.first + r * rows.step;
    take(pattern, part, i + mask.offset, mask.visible(i, nk));
  }
  rows_found_ = rows_found_ && move_runs();
  if (!rows_found_) unite_runs();
}

// Appends the runs of the next row.
void TileColumns::take(const SparsePattern& pattern, size_t part, Index position, Index visible) {
  Entries own{given_.size(), given_.size()};
  if (visible > 0) {
    pattern.keys(part, position, visible, given_);
    for (size_t k = own.begin; k < given_.size(); ++k)
      if (given_[k].count > 0) given_[own.end++] = given_[k];
    given_.resize(own.end);
  }
  const auto at = [&](size_t entry) { return given_.begin() + static_cast<std::ptrdiff_t>(entry); };
  if (!of_rows_.empty()) {
    const Entries before = of_rows_.back();
    if (std::equal(at(before.begin), at(before.end), at(own.begin), at(own.end), same)) {
      given_.resize(own.begin);
      own = before;
    }
  }
  of_rows_.push_back(own);
}

void TileColumns::unite_runs() {
  // The first run of a row mostly overlaps the first of the row before, the second the second, and so on: few are left
  // to sort.
  runs_.clear();
  for (size_t r = 0; r < of_rows_.size(); ++r) {
    if (r > 0 && of_rows_[r] == of_rows_[r - 1]) continue;
    const auto [begin, end] = of_rows_[r];
    for (size_t k = begin; k < end; ++k)
      if (k - begin >= runs_.size() || !unite(runs_[k - begin], given_[k])) runs_.push_back(given_[k]);
  }
  if (!std::is_sorted(runs_.begin(), runs_.end(), before)) std::sort(runs_.begin(), runs_.end(), before);
  size_t kept = 0;
  for (const IndexRun& run : runs_)
    if (kept == 0 || !unite(runs_[kept - 1], run)) runs_[kept++] = run;
  runs_.resize(kept);
  columns_.assign(1, 0);
  for (const IndexRun& run : runs_) columns_.push_back(columns_.back() + run.count);
}

// If the rows' runs are those of the layout before, each united run moved as a whole and none to where it touches
// another, moves the united runs. Columns and the rows that see them are then the same. Otherwise returns false and
// changes nothing.
bool TileColumns::move_runs() {
  if (of_rows_ != of_rows_before_ || given_.size() != given_before_.size()) return false;
  constexpr Index unknown = std::numeric_limits<Index>::max();
  moves_.assign(runs_.size(), unknown);
  for (size_t k = 0; k < given_.size(); ++k) {
    const IndexRun &run = given_[k], &earlier = given_before_[k];
    Index& move = moves_[place_of(earlier)];
    if (move == unknown) move = run.first - earlier.first;
    if (!same(run, {earlier.first + move, earlier.count, earlier.step})) return false;
  }
  moved_ = runs_;
  for (size_t u = 0; u < moved_.size(); ++u) {
    moved_[u].first += moves_[u];
    if (u == 0) continue;
    IndexRun both = moved_[u - 1];
    if (!before(both, moved_[u]) || unite(both, moved_[u])) return false;
  }
  runs_.swap(moved_);
  return true;
}

// The united run that holds this one.
size_t TileColumns::place_of(const IndexRun& run) const {
  if (runs_.size() == 1) return 0;
  return static_cast<size_t>(std::upper_bound(runs_.begin(), runs_.end(), run, before) - runs_.begin() - 1);
}

// Its columns.
TileColumns::Segment TileColumns::place(const IndexRun& run) const {
  const size_t of = place_of(run);
  const Index column = columns_[of] + steps(run.first - runs_[of].first, run.step);
  return {column, column + run.count};
}

void TileColumns::find_segments() {
  segments_.clear();
  const bool all_alike =
      std::all_of(of_rows_.begin(), of_rows_.end(), [&](const Entries& row) { return row == of_rows_.front(); });
  if (all_alike) {  // each row sees all columns
    if (width() > 0) segments_.push_back({0, width()});
    std::fill(of_rows_.begin(), of_rows_.end(), Entries{0, segments_.size()});
    return;
  }
  Entries given, placed;
  for (Entries& row : of_rows_) {
    if (row.begin == row.end || row != given) {
      given = row;
      const size_t first = segments_.size();
      for (size_t next = row.begin; next < row.end; ++next) segments_.push_back(place(given_[next]));
      join(first);
      placed = {first, segments_.size()};
    }
    row = placed;
  }
}

void TileColumns::find_rows() {
  if (rows_found_) return;
  rows_that_see_.assign(static_cast<size_t>(width()) + 1, 0);
  extents_.clear();
  for (size_t r = 0; r < of_rows_.size();) {
    const Entries runs = of_rows_[r];
    std::uint64_t alike = 0;  // this row and those after it that have the same runs
    const size_t first = r;
    for (; r < of_rows_.size() && of_rows_[r] == runs; ++r) alike |= std::uint64_t(1) << r;
    Segment extent{width(), 0};
    for (size_t k = runs.begin; k < runs.end; ++k) {
      const Segment columns = place(given_[k]);
      extent = {std::min(extent.begin, columns.begin), std::max(extent.end, columns.end)};
      for (const Index end : {columns.begin, columns.end}) rows_that_see_[static_cast<size_t>(end)] ^= alike;
    }
    extents_.insert(extents_.end(), r - first, extent);
  }
  for (size_t column = 1; column < rows_that_see_.size(); ++column)
    rows_that_see_[column] ^= rows_that_see_[column - 1];
  rows_found_ = true;
}

// Sorts the segments from `first` on and merges those that touch.
void TileColumns::join(size_t first) {
  if (segments_.size() - first < 2) return;
  const auto start = segments_.begin() + static_cast<std::ptrdiff_t>(first);
  std::sort(start, segments_.end(), [](const Segment& a, const Segment& b) { return a.begin < b.begin; });
  size_t kept = first;
  for (size_t s = first + 1; s < segments_.size(); ++s)
    if (segments_[s].begin == segments_[kept].end)
      segments_[kept].end = segments_[s].end;
    else
      segments_[++kept] = segments_[s];
  segments_.resize(kept + 1);
}

}  // namespace attnbench
