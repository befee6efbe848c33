// Costs that no entry declares, measured on a gaussian head with one thread.
#pragma once

#include <optional>
#include <string>

#include "harness/core/approximation.hpp"

namespace attnbench {

// "keys": the mean number of keys that a row reads, counted in the method's pattern. "kv-bytes": what its decoder keeps
// after all tokens. "seconds": the least of three calls. nullopt if the method has no pattern or no decoder. Of an
// entry of a plugin, and of methods with one inside, a worker measures it (MethodEntry::measured).
std::optional<double> measured_cost(const std::string& what, const Params& method, const Shape& shape);

}  // namespace attnbench
