// Which of the measured methods answers best: the fastest that meets the limits, or exact softmax.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/statistics/estimate.hpp"

namespace attnbench {

// One method with its budget, as it was measured.
struct Candidate {
  std::string method;
  Estimate error;                    // |A'V - AV| / |AV|, over draws and, of laws, inputs
  Estimate time = {};                // of a call, over that of exact softmax in the same block
  double seconds = 0;                // of a call, the median
  std::optional<double> bytes = {};  // at the peak of a call, beyond inputs and output; nothing: not known
};

// What the user can bear, at most.
struct Needs {
  double error;
  std::optional<double> bytes = {};
};

enum class Fit { meets, ambiguous, misses };
// Whether the error's interval lies below the limit, on it or above it.
Fit fit_of_error(const Estimate& error, const Needs& needs);
// The same of all limits together.
Fit fit_of(const Candidate& candidate, const Needs& needs);

struct Recommendation {
  std::optional<Candidate> best;  // nothing: none surely meets the limits
  std::string sentence;
  std::vector<Candidate> ranked;  // those that meet the limits, then ambiguous ones, then the others; fastest first
};

// Exact softmax is the best answer unless a candidate that meets the limits is surely faster, or softmax itself takes
// too much memory. Of those that the intervals of their times do not tell from the fastest, the one with the least
// error is best. The intervals are the candidates' own: their family error rate is the caller's.
Recommendation recommend(const std::vector<Candidate>& candidates, const Candidate& exact, const Needs& needs);

}  // namespace attnbench
