// Measures which method each head of a model can have: the losses of single heads, the costs of calls, and then the
// assignment as a whole.
#pragma once

#include <optional>

#include "experiments/commands/assignment.hpp"
#include "experiments/commands/search_space.hpp"
#include "harness/runner/run.hpp"
#include "harness/statistics/estimate.hpp"

namespace attnbench {

enum class Saved { time, memory };

struct ModelNeeds {
  double loss = 0;  // bits per byte above exact attention, at most
  Saved saved = Saved::time;
};

struct MeasuredAssignment {
  Index layers = 0, heads = 0;  // of the model; heads of one layer
  Assignment chosen;
  Estimate loss = {};  // of the chosen assignment as a whole, over the texts that did not choose it
  Estimate cost = {};  // of its calls over those of softmax, all heads together
  // The next assignment of the greedy order that was measured and may lose more than the limit.
  std::optional<Assignment> refused = {};
  Estimate refused_loss = {};
  size_t candidates = 0, cheaper = 0;  // with budgets; those that cost significantly less than softmax
  size_t unmeasured = 0;               // candidates or heads without a number
  std::string first_reason = {};       // of those
};

// Throws Misuse for a model with too few texts to choose and to judge.
void refuse_few_texts(const RunRequest& model);

// The losses of single heads are means over the first `choosing_texts` texts; the whole is measured on all others, so
// that the texts that chose an assignment do not judge it. The whole is found by bisection of the greedy order: the
// last assignment whose interval of the loss lies below the limit. All intervals together miss with probability
// `recommendation_error_rate` at most. Results go into the store, and those that are there are used. Empty if the user
// interrupted. model: an input that is a model; its `methods` are ignored.
std::optional<MeasuredAssignment> measure_assignment(const RunRequest& model, const std::vector<Params>& candidates,
                                                     const ModelNeeds& needs, Store& store, std::int64_t run_id);

inline constexpr Index choosing_texts = 8, least_judging_texts = 8;

}  // namespace attnbench
