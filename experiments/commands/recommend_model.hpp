// attnbench recommend --model: a method for each head of a whole model.
#pragma once

#include "experiments/commands/measured_assignment.hpp"

namespace attnbench {

// Measures, and prints the assignment with the commands that take it. Returns the exit code.
int recommend_for_model(const RunRequest& model, const SearchSpace& space, const ModelNeeds& needs, Store& store,
                        std::int64_t run_id);

}  // namespace attnbench
