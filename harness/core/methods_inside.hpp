// The methods that a spec's parameters name, such as the base of truncated and the parts of combine.
#pragma once

#include <vector>

#include "harness/core/parameters.hpp"

namespace attnbench {

// Those directly inside, in the order of the parameters.
std::vector<Params> methods_inside(const Params& method);

}  // namespace attnbench
