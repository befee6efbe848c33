// What differs between two results files: before and after a change, or on one machine and another.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/store/compare_metric.hpp"

namespace attnbench {

struct ComparedFiles {
  std::vector<ComparedMetric> metrics;
  std::vector<std::string> endings;         // cells whose replicates ended otherwise, in words
  std::vector<std::string> only_a, only_b;  // cells, in words
  double error_rate = 1e-3;                 // of the whole family; Bonferroni over `metrics`
};

// Cells are the same when experiment, method and input (specs, with their parameters), sizes and threads are; version,
// seed and machine may differ (of several versions in one file the newest counts). An array stands by its mean.
// Timings (arrays in s or 1/s, and speedups) are compared by all their samples, as those of two sessions. metric: only
// that one; all when empty. Throws Misuse when a path is no results file.
ComparedFiles compare(const std::filesystem::path& a, const std::filesystem::path& b, const std::string& metric);

}  // namespace attnbench
