// Differences between two results files: before and after a change, or on two machines.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/store/compare_metric.hpp"

namespace attnbench {

struct ComparedFiles {
  std::vector<ComparedMetric> metrics;
  std::vector<std::string> endings;         // cells whose replicates ended differently, in words
  std::vector<std::string> only_a, only_b;  // cells, in words
  double error_rate = 1e-3;                 // of the whole family; Bonferroni over `metrics`
};

// Two cells are the same if experiment, method and input (specs, with their parameters), sizes and threads are equal.
// Version, seed and machine may differ; of several versions in one file the newest counts. An array is compared by its
// mean. Timings (arrays in s or 1/s, and speedups) are compared by all their samples, as two sessions. metric: compare
// only this one; empty: all. Throws Misuse when a path is not a results file.
ComparedFiles compare(const std::filesystem::path& a, const std::filesystem::path& b, const std::string& metric,
                      const WhichIsBetter& which);

}  // namespace attnbench
