// Reads cells of a results file for comparisons: each under a name that equal cells share, with its numbers by
// replicate. Private to harness/store.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

using Place = std::pair<std::string, Index>;  // seed and replicate: where the random streams start

struct PlacedNumber {
  double value;           // the mean, for an array
  std::uint64_t content;  // hash of the bytes
};

struct PlacedNumbers {
  std::string unit;
  std::map<Place, PlacedNumber> numbers;
  std::map<Place, std::vector<double>> samples;  // timings: every element, one per block

  std::vector<double> all_samples() const;
};

struct MeasuredCell {
  bool timing;
  std::string version;  // source version and machine of the cell that counts
  std::map<std::string, PlacedNumbers> metrics;
  std::map<Place, std::string> endings;
};

struct CellSelection {
  std::string name;                       // SQL over the table `cell` that gives the name under which equal cells meet
  std::string metric = {};                // only this metric; empty: all, but for timing cells only the timings
  bool memory = false;                    // also metrics in bytes
  std::vector<std::string> methods = {};  // two canonical specs; empty: all
};

// SQL for the name of a problem (experiment, input, sizes, threads), and for the same with the method.
extern const std::string name_of_problem, name_of_cell;

// If a name has several versions, the newest counts. Throws Misuse when the path is not a results file.
std::map<std::string, MeasuredCell> read_cells(const std::filesystem::path& path, const CellSelection& selection);

}  // namespace attnbench
