// The source of figures: the cells of a results file with their replicates and numbers, read once.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "harness/store/selection.hpp"

namespace attnbench {

// A metric of one replicate that is done.
struct MeasuredValues {
  std::string unit;
  std::vector<Index> shape;  // empty: a scalar
  std::vector<double> values;

  double mean() const;
};

class MeasuredResults {
 public:
  // An existing results file. Of cells that differ only in the version of their sources, the one that was measured last
  // counts.
  explicit MeasuredResults(const std::filesystem::path& file);
  ~MeasuredResults();

  const std::vector<StoredCell>& cells() const { return cells_; }
  // The positions in cells() of these keys; a key of an older version leads to the newest one.
  std::vector<size_t> positions(const std::vector<std::string>& keys) const;

  struct Replicate {
    Index number = 0;
    std::string ending, reason;
    bool done() const { return ending == "done"; }
  };
  const std::vector<Replicate>& replicates(size_t cell) const { return replicates_.at(cell); }

  // That metric of a cell by replicate; empty if it has none.
  const std::map<Index, MeasuredValues>& values(size_t cell, const std::string& metric) const;
  std::vector<std::string> metrics() const;                                     // of any cell, sorted
  std::vector<std::string> metrics_of(const std::vector<size_t>& cells) const;  // sorted

 private:
  struct Connection;
  using OfMetric = std::unordered_map<size_t, std::map<Index, MeasuredValues>>;

  std::unique_ptr<Connection> connection_;
  std::vector<StoredCell> cells_;
  std::vector<std::vector<Replicate>> replicates_;
  std::unordered_map<std::string, size_t> position_of_key_;
  std::unordered_map<std::int64_t, size_t> position_of_id_;
  mutable std::map<std::string, OfMetric> metrics_;  // read on first use
};

}  // namespace attnbench
