// What differs between two results files: before and after a change, or on one machine and another.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/statistics/intervals.hpp"

namespace attnbench {

// One metric of a cell that both files have.
struct ComparedMetric {
  enum class Outcome {
    equal,         // bit for bit: statistics in every replicate that both have, timings in all
    within_error,  // the interval holds no change, or the change is rounding: below 1e-12 of the numbers
    differs,
    undecided,  // not equal, and too few numbers for an interval
  };
  std::string cell, metric, unit;
  Outcome outcome = Outcome::equal;
  bool timing = false;  // medians and their ratio b / a; else means and their difference b - a
  double a = 0, b = 0, change = 0;
  Interval interval = {};
  size_t pairs = 0;  // replicates of the same seed and number that both have; 0: compared as independent samples
};

struct Comparison {
  std::vector<ComparedMetric> metrics;
  std::vector<std::string> endings;         // cells whose replicates ended otherwise, in words
  std::vector<std::string> only_a, only_b;  // cells, in words
  double error_rate = 1e-3;                 // of the whole family; Bonferroni over `metrics`
};

// Cells are the same when experiment, method and input (specs, with their parameters), sizes and threads are; version,
// seed and machine may differ (of several versions in one file the newest counts). Numbers of statistics are compared
// over replicates, as pairs where both files have the same seed and replicate (which then saw the same input and
// draws); an array stands by its mean. Timings (arrays in s or 1/s) are compared by all their samples. metric: only
// that one; all when empty. Throws Misuse when a path is no results file.
Comparison compare(const std::filesystem::path& a, const std::filesystem::path& b, const std::string& metric);

}  // namespace attnbench
