// Which of the measured methods to recommend: the fastest that meets the limits, or exact softmax.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/statistics/estimate.hpp"

namespace attnbench {

// One method with its budget, as it was measured.
struct Candidate {
  std::string method;
  Estimate error;                    // |A'V - AV| / |AV|, over draws, and over inputs if these are random
  Estimate time = {};                // of a call, relative to exact softmax in the same block
  double seconds = 0;                // of a call, median
  std::optional<double> bytes = {};  // peak of a call, without inputs and output; empty: not known
  double rounding = 0;               // of float's output against double's, relative to its norm
};

// The user's limits.
struct Needs {
  double error;
  std::optional<double> bytes = {};
};

enum class Fit { meets, ambiguous, misses };
// Whether the interval of the error lies below the limit, contains it or lies above it.
Fit fit_of_error(const Estimate& error, const Needs& needs);
// The same for all limits together.
Fit fit_of(const Candidate& candidate, const Needs& needs);

struct Recommendation {
  std::optional<Candidate> best;  // empty: none meets the limits with its whole interval
  std::string sentence;
  std::vector<Candidate> ranked;  // those that meet the limits, then ambiguous ones, then the others; fastest first
};

// Exact softmax is the best answer unless a candidate that meets the limits is significantly faster, or softmax itself
// takes too much memory. Among the candidates whose time intervals overlap that of the fastest, the one with the least
// error is best. The intervals come with the candidates: the caller is responsible for their joint error rate.
Recommendation recommend(const std::vector<Candidate>& candidates, const Candidate& exact, const Needs& needs);

}  // namespace attnbench
