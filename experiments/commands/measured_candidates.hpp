// Measures the candidates of a recommendation: errors of all, times of those that can be the answer.
#pragma once

#include "experiments/commands/recommendation.hpp"
#include "experiments/commands/search_space.hpp"
#include "harness/runner/run.hpp"

namespace attnbench {

struct MeasuredCandidates {
  Candidate exact;
  std::vector<Candidate> timed;     // with softmax, in turns
  std::vector<Candidate> untimed;   // that err too much, by the intervals of all replicates; the least first
  size_t dropped = 0;               // that every replicate of a first few had at more than twice the limit
  size_t dominated = 0;             // a candidate that meets the limit costs less
  size_t unmeasured = 0;            // skipped, failed, ...
  std::string first_reason;         // of the unmeasured
  std::string least_dropped;        // "vq:codes=512 (0.21)": of those dropped, the one that errs least
  std::vector<std::string> fitted;  // methods that learnt from the measured head itself: its input has no other
};

// Errors are those of the input on which a method errs most, times are of the first one. The intervals of all errors
// and times together miss with probability `recommendation_error_rate` at most (Bonferroni). Everything goes into the
// store, and what is there is not measured again. Nothing when it was interrupted. heads: inputs of one shape; the
// methods are not read.
std::optional<MeasuredCandidates> measure_candidates(const RunRequest& heads, const std::vector<Params>& candidates,
                                                     const Needs& needs, Store& store, std::int64_t run_id);

inline constexpr double recommendation_error_rate = 0.05;

// The shape of those heads. Throws Misuse for an input or a size that cannot be, and for heads of several shapes.
Shape shape_of(const RunRequest& heads);

}  // namespace attnbench
