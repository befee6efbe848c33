// The methods that a spec's parameters name, such as the base of truncated and the parts of combine.
#pragma once

#include <vector>

#include "harness/core/parameters.hpp"

namespace attnbench {

// Returns the methods directly inside a spec, in the order of its parameters.
std::vector<Params> methods_inside(const Params& method);

}  // namespace attnbench
