// Compares two methods on every problem that one results file has for both.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/store/compare_metric.hpp"

namespace attnbench {

struct ComparedMethods {
  // `cell` is the problem: experiment, input, sizes and, for timings, the machine. better: B is better. same: equal, or
  // different by rounding only; an interval that contains no difference is ambiguous. Sorted by metric.
  std::vector<ComparedMetric> metrics;
  std::vector<std::string> endings;  // problems where one of the two did not end `done`, in words
  double error_rate = 0.05;          // of the whole family; Bonferroni over `metrics`
};

// a, b: canonical specs. Statistics are compared as pairs of replicates, timings as pairs of the blocks in which both
// took a turn; timings from different times are compared as two sessions. metric: compare only this one; empty: all.
// Throws Misuse when the path is not a results file, and when the two methods have no problem or no such metric in
// common. The message says what the file has and which run would make the rest.
ComparedMethods compare_methods(const std::filesystem::path& path, const std::string& a, const std::string& b,
                                const std::string& metric, const WhichIsBetter& which);

}  // namespace attnbench
