// Compares one metric of two cells, by a paired or unpaired interval and by which direction is better.
#pragma once

#include <string>

#include "harness/statistics/intervals.hpp"
#include "harness/store/better.hpp"
#include "harness/store/compare_cells.hpp"

namespace attnbench {

struct ComparedMetric {
  enum class Outcome {
    same,       // equal, or the interval contains no change, or the change is rounding (below 1e-12 of the numbers)
    better,     // B is better
    worse,      // B is worse
    differs,    // they differ and neither is better
    ambiguous,  // too few numbers for an interval; timings: the interval cannot tell a change from noise
  };
  std::string cell, metric, unit;
  Better better = Better::unstated;
  Outcome outcome = Outcome::same;
  bool equal = false;   // bit for bit: statistics in every replicate that both have, timings in all samples
  bool timing = false;  // compares medians by their ratio b / a; otherwise means by their difference b - a
  double a = 0, b = 0, change = 0;
  Interval interval = {};
  size_t pairs = 0;  // replicates of equal seed and number, or blocks of turns, that both have; 0: not paired
};

// Timings of different sessions differ by more than their samples show: other work on the machine, the layout of
// memory. Ratios within these factors count as the same. Speedups have the smaller factor, because softmax shares their
// session. Three sessions of one program on an idle virtual machine (7 methods, n = 512 and 2048, a minute apart) had
// ratios of 0.986 to 1.010 (seconds) and 0.994 to 1.016 (speedups); the rest allows for other days and for machines
// that are not idle.
inline constexpr double resolution_of_seconds = 1.25, resolution_of_speedups = 1.1;

// Statistics: compares replicates, paired where both have the same seed and replicate, which then saw the same input
// and draws. error_rate: of the interval.
void compare_numbers(const PlacedNumbers& a, const PlacedNumbers& b, double error_rate, ComparedMetric& to);
// Timings of two sessions: compares all their samples. Changes within the resolution count as none.
void compare_sessions(const PlacedNumbers& a, const PlacedNumbers& b, double error_rate, ComparedMetric& to);
// Timings that took turns: the median of the ratios within a block.
void compare_blocks(const PlacedNumbers& a, const PlacedNumbers& b, double error_rate, ComparedMetric& to);

}  // namespace attnbench
