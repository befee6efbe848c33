// What comparisons read of a results file: cells by a name of what makes them the same, with their numbers by
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
  double value;           // of an array, its mean
  std::uint64_t content;  // hash of the bytes
};

struct PlacedNumbers {
  std::string unit;
  std::map<Place, PlacedNumber> numbers;
  std::map<Place, std::vector<double>> samples;  // of timings: every element, one a block

  std::vector<double> all_samples() const;
};

struct MeasuredCell {
  bool timing;
  std::string version;  // source version and machine of what counts
  std::map<std::string, PlacedNumbers> metrics;
  std::map<Place, std::string> endings;
};

struct CellSelection {
  std::string name;                       // SQL over the table `cell`: what makes cells the same, as it is shown
  std::string metric = {};                // only that one; empty: all, of timing cells the timings alone
  bool memory = false;                    // and what is measured in bytes
  std::vector<std::string> methods = {};  // two canonical specs; empty: all
};

// SQL: what makes problems the same (experiment, input, sizes, threads), as it is shown, and the same with the method.
extern const std::string name_of_problem, name_of_cell;

// Of several versions under one name the newest counts. Throws Misuse when the path is no results file.
std::map<std::string, MeasuredCell> read_cells(const std::filesystem::path& path, const CellSelection& selection);

}  // namespace attnbench
