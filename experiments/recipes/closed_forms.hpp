// Several recipes judge whether measured errors of kernel estimates agree with their closed forms.
#pragma once

#include <string>
#include <vector>

#include "harness/runner/recipe.hpp"

namespace attnbench {

// "performer:m=16 on pair:length=1, d = 4"
std::string name_of(const Cells& one);

// The kernel-error experiment with that many draws of one pair per replicate. It always takes all draws: stopping once
// the error looks small would favour small errors.
std::string draws_of_a_pair(Index draws);

// relative_mse over relative_mse_theory, cell by cell: HOLDS when every interval holds 1 and none is wider than the
// resolution. Cells whose error comes from draws that are too rare to be sampled are left out, and counted.
Finding on_closed_forms(const Recipe& recipe, const Cells& cells, double resolution);

}  // namespace attnbench
