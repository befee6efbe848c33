// The layout of a tile of the sparse engine, where an object lays out one tile after another: each must be what a new
// object would lay out, although a tile whose runs are those of the tile before, moved, keeps that one's columns.
#include "approximations/sparse/tile_columns.hpp"

#include <algorithm>
#include <random>
#include <set>

#include "tests/catch.hpp"

namespace attnbench::tile_columns_test {

namespace {

constexpr Index rows_of_tile = 16, keys = 4000;

// The runs of each row.
class Listed final : public SparsePattern {
 public:
  std::vector<std::vector<IndexRun>> rows;
  void keys(size_t, Index position, Index, std::vector<IndexRun>& runs) const override {
    const auto& own = rows[static_cast<size_t>(position)];
    runs.insert(runs.end(), own.begin(), own.end());
  }
};

bool same(const std::vector<IndexRun>& a, const std::vector<IndexRun>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const IndexRun& x, const IndexRun& y) {
    return x.first == y.first && x.count == y.count && x.step == y.step;
  });
}

// Tiles one after another. Each has up to three groups of rows with a run each; from one tile to the next the groups
// move by multiples of their step, mostly alike, now and then into each other, and sometimes something else changes.
class Tiles {
 public:
  explicit Tiles(unsigned seed) : random_(seed) {
    for (int g = below(3); g >= 0; --g)
      groups_.push_back({Index(10) * below(40), 1 + below(12), below(4) == 0 ? 3 : 1});
    seen_by_.resize(groups_.size());
    for (auto& rows : seen_by_)
      for (Index r = 0; r < rows_of_tile; ++r) rows.push_back(below(3) > 0);
    slope_ = below(3);
  }

  Listed next() {
    Listed pattern;
    for (Index r = 0; r < rows_of_tile; ++r) {
      auto& runs = pattern.rows.emplace_back();
      std::set<Index> seen;  // no key may be in two runs of a row
      for (size_t g = 0; g < groups_.size(); ++g) {
        IndexRun run = groups_[g];
        run.first += r * slope_ * run.step;
        bool fresh = seen_by_[g][static_cast<size_t>(r)];
        for (Index k = 0; k < run.count; ++k) fresh &= !seen.contains(run.first + k * run.step);
        if (!fresh) continue;
        for (Index k = 0; k < run.count; ++k) seen.insert(run.first + k * run.step);
        runs.push_back(run);
      }
    }
    const int move = below(5) == 0 ? below(30) : 12;
    for (IndexRun& run : groups_) run.first += Index(3) * (below(12) == 0 ? below(30) : move);
    if (below(8) == 0) groups_[static_cast<size_t>(below(static_cast<int>(groups_.size())))].count += 1;
    if (below(8) == 0) seen_by_[0][static_cast<size_t>(below(rows_of_tile))].flip();
    return pattern;
  }

 private:
  int below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }

  std::minstd_rand random_;
  std::vector<IndexRun> groups_;
  std::vector<std::vector<bool>> seen_by_;
  Index slope_ = 0;
};

}  // namespace

TEST_CASE("a tile after another is laid out as it would be by itself", "[methods]") {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    Tiles tiles(seed);
    TileColumns reused;
    for (int t = 0; t < 20; ++t) {
      INFO("seed " << seed << ", tile " << t);
      const Listed pattern = tiles.next();
      TileColumns fresh;
      for (TileColumns* one : {&fresh, &reused}) one->lay(pattern, 0, {0, rows_of_tile, 1}, {}, keys);
      REQUIRE(same(reused.runs(), fresh.runs()));
      REQUIRE(reused.columns() == fresh.columns());
      if (t % 7 == 6) {
        for (TileColumns* one : {&fresh, &reused}) one->find_segments();
        for (Index r = 0; r < rows_of_tile; ++r) {
          const auto got = reused.segments(r), want = fresh.segments(r);
          REQUIRE(std::equal(got.begin(), got.end(), want.begin(), want.end()));
        }
        continue;
      }
      for (TileColumns* one : {&fresh, &reused}) one->find_rows();
      for (Index column = 0; column < fresh.width(); ++column)
        REQUIRE(reused.rows_that_see(column) == fresh.rows_that_see(column));
      for (Index r = 0; r < rows_of_tile; ++r) REQUIRE(reused.extent(r) == fresh.extent(r));
    }
  }
}

}  // namespace attnbench::tile_columns_test
