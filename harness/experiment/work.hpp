// Formulas for the work of one replicate, from which the runner estimates seconds. An experiment adds up these parts in
// its ExperimentEntry::work.
#pragma once

#include "harness/core/approximation.hpp"
#include "harness/experiment/cell.hpp"

namespace attnbench {

// One call of the method on the cell's head.
Work work_of_call(const Cell& cell);
// `layers` layers, each with the method, its exact counterpart, and a decomposition of what the experiment holds in
// addition to the heads.
Work work_of_layers(const Cell& cell, Index layers);
// `draws` draws of the method, each applied to `pairs` pairs (q_i, k_i).
Work work_of_draws(const Cell& cell, Index draws, Index pairs);

// Cost of one normal random number, in exponentials.
inline constexpr double exponentials_of_a_normal = 10;

}  // namespace attnbench
