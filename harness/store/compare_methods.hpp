// Two methods against each other, wherever one results file has both.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/store/compare_metric.hpp"

namespace attnbench {

struct ComparedMethods {
  // `cell` is the problem: experiment, input, sizes, and of timings the machine. better: B is. same: equal, or apart by
  // rounding; an interval that holds no difference is ambiguous. Sorted by metric.
  std::vector<ComparedMetric> metrics;
  std::vector<std::string> endings;  // problems where one of the two was not done, in words
  double error_rate = 0.05;          // of the whole family; Bonferroni over `metrics`
};

// a, b: canonical specs. Statistics as pairs of replicates, timings as pairs of the blocks in which both had a turn; of
// what was timed at other times, as of two sessions. metric: only that one; all when empty. Throws Misuse when the path
// is no results file, and when the two have no problem or no such metric in common: it says what is there and which run
// would make it.
ComparedMethods compare_methods(const std::filesystem::path& path, const std::string& a, const std::string& b,
                                const std::string& metric);

}  // namespace attnbench
