// What the replicates of a results file took: the ground of estimates.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/core/problem.hpp"

namespace attnbench {

// A cell with replicates that are done.
struct PastCell {
  std::string experiment, method, input;  // canonical specs
  Shape shape;
  Index heads = 1;
  double logit_scale = 1;
  int threads = 0;     // 0: statistics
  double seconds = 0;  // of a replicate, the mean over those that are done
};

// The cells of that experiment, with any options, that have replicates which are done; of timings those of this
// machine. results: a file that is there.
std::vector<PastCell> past_cells(const std::filesystem::path& results, const std::string& experiment);

}  // namespace attnbench
