// One metric of two cells, compared: by a paired or unpaired interval, and by what is better of it.
#pragma once

#include <string>

#include "harness/statistics/intervals.hpp"
#include "harness/store/compare_cells.hpp"

namespace attnbench {

enum class Preference { less, more, none };
// Errors, times, bytes and FLOPs are better when less, rates, speedups and retrieval when more; of the rest (an
// entropy, a rank, what theory predicts) nothing is better.
Preference preference_of(const std::string& metric, const std::string& unit);

struct ComparedMetric {
  enum class Outcome {
    same,       // equal, or the interval holds no change, or the change is rounding (below 1e-12 of the numbers)
    better,     // B is
    worse,      // B is
    differs,    // and neither is better
    ambiguous,  // too few numbers for an interval; timings: one that does not say whether it is more than noise
  };
  std::string cell, metric, unit;
  Outcome outcome = Outcome::same;
  bool equal = false;   // bit for bit: statistics in every replicate that both have, timings in all
  bool timing = false;  // medians and their ratio b / a; else means and their difference b - a
  double a = 0, b = 0, change = 0;
  Interval interval = {};
  size_t pairs = 0;  // replicates of the same seed and number, or blocks of turns, that both have; 0: not paired
};

// Timings of different sessions differ by more than their samples tell: what else the machine did, how memory was laid
// out. Ratios within these factors count as the same; ratios to softmax, which shares its session, bear the smaller.
// Three sessions of one program on an idle virtual machine (7 methods, n = 512 and 2048, a minute apart) had ratios of
// 0.986 to 1.010 (seconds) and 0.994 to 1.016 (speedups); the rest is for other days and for machines that are not
// idle.
inline constexpr double resolution_of_seconds = 1.25, resolution_of_speedups = 1.1;

// Statistics: over replicates, as pairs where both have the same seed and replicate (which then saw the same input and
// draws). error_rate: of the interval.
void compare_numbers(const PlacedNumbers& a, const PlacedNumbers& b, double error_rate, ComparedMetric& to);
// Timings of two sessions by all their samples, beyond the resolution.
void compare_sessions(const PlacedNumbers& a, const PlacedNumbers& b, double error_rate, ComparedMetric& to);
// Timings that took turns: the median of the ratios within a block.
void compare_blocks(const PlacedNumbers& a, const PlacedNumbers& b, double error_rate, ComparedMetric& to);

}  // namespace attnbench
