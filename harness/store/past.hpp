// Run times of the replicates in a results file, which estimates are based on.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/core/problem.hpp"

namespace attnbench {

// A cell with replicates that ended `done`.
struct PastCell {
  std::string experiment, method, input;  // canonical specs
  Shape shape;
  Index heads = 1;
  double logit_scale = 1;
  int threads = 0;     // 0: statistics
  double seconds = 0;  // mean over the replicates that are done
};

// The cells of that experiment, with any options, that have replicates which are done; for timings only those of this
// machine. results: an existing file.
std::vector<PastCell> past_cells(const std::filesystem::path& results, const std::string& experiment);

}  // namespace attnbench
