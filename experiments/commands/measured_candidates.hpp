// Measures the candidates of a recommendation: the errors of all, and the times of those that can still be best.
#pragma once

#include "experiments/commands/recommendation.hpp"
#include "experiments/commands/search_space.hpp"
#include "harness/runner/run.hpp"

namespace attnbench {

struct MeasuredCandidates {
  Candidate exact;
  std::vector<Candidate> timed;     // in turns with softmax
  std::vector<Candidate> untimed;   // error above the limit, by the interval of all replicates; smallest error first
  size_t dropped = 0;               // error above twice the limit in every replicate of the first look
  size_t dominated = 0;             // another candidate meets the limit and costs less
  size_t unmeasured = 0;            // skipped, failed, ...
  std::string first_reason;         // why the first unmeasured one failed
  std::string least_dropped;        // "vq:codes=512 (0.21)": the dropped one with the smallest error
  std::vector<std::string> fitted;  // methods fitted to the measured head itself: the input has no calibration head
};

// Errors are those on the worst input of each method; times are on the first input. With probability at least
// 1 - `recommendation_error_rate` all intervals hold at once (Bonferroni). Results go into the store; results that are
// already there are reused. Empty if the user interrupted. heads: inputs of one shape; its `methods` are ignored.
std::optional<MeasuredCandidates> measure_candidates(const RunRequest& heads, const std::vector<Params>& candidates,
                                                     const Needs& needs, Store& store, std::int64_t run_id);

inline constexpr double recommendation_error_rate = 0.05;

// The shape of those heads. Throws Misuse for an invalid input or size, and for heads of different shapes.
Shape shape_of(const RunRequest& heads);

}  // namespace attnbench
