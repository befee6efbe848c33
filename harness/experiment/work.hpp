// What experiments compute in a replicate, from formulas alone: the runner estimates seconds from it. An experiment
// adds up these parts in its ExperimentEntry::work.
#pragma once

#include "harness/core/approximation.hpp"
#include "harness/experiment/cell.hpp"

namespace attnbench {

// One call of the method on the cell's head.
Work work_of_call(const Cell& cell);
// So many layers, each with the method, its exact counterpart, and a decomposition of what the experiment holds beside
// the heads.
Work work_of_layers(const Cell& cell, Index layers);
// So many draws of the method, each applied to so many pairs (q_i, k_i).
Work work_of_draws(const Cell& cell, Index draws, Index pairs);

// Exponentials that a normal random number costs.
inline constexpr double exponentials_of_a_normal = 10;

}  // namespace attnbench
