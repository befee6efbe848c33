// The candidates to replace exact softmax at one shape: methods with budgets.
#pragma once

#include <string>
#include <vector>

#include "harness/core/approximation.hpp"

namespace attnbench {

struct SearchSpace {
  std::vector<Params> candidates;         // in the order of the methods, budgets ascending
  std::vector<std::string> without_form;  // "linformer: every projected key mixes all tokens, later ones included"
};

// methods: specs; empty: every registered one but softmax and per-head. If a spec leaves its budget (Parameter::budget)
// open, powers of two are tried: the six most expensive ones among those that cost at most half of softmax's FLOPs. The
// spec is used unchanged if no power of two is that cheap or if the method has no budget. Throws Misuse for invalid
// specs.
SearchSpace search_space(const std::vector<std::string>& methods, const Shape& shape);

}  // namespace attnbench
