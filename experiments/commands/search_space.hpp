// What could stand in for exact softmax at one shape: methods with budgets.
#pragma once

#include <string>
#include <vector>

#include "harness/core/approximation.hpp"

namespace attnbench {

struct SearchSpace {
  std::vector<Params> candidates;         // in the order of the methods, budgets ascending
  std::vector<std::string> without_form;  // "linformer: every projected key mixes all tokens, later ones included"
};

// methods: specs; empty: every registered one but softmax and per-head. A budget (Parameter::budget) that a spec leaves
// open takes powers of two, of those that cost at most half of softmax's FLOPs the six that cost most; where none does,
// and where a method has no budget, its spec stands as it is. Throws Misuse for specs that cannot be.
SearchSpace search_space(const std::vector<std::string>& methods, const Shape& shape);

}  // namespace attnbench
