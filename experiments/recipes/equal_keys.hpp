// Methods that read a share of the keys, compared at equal numbers of keys read.
#pragma once

#include "harness/runner/recipe.hpp"

namespace attnbench {

// A metric of a family of methods at so many keys, for each replicate: the power law through the two members around
// that number, or through the first or last two. `head` has the family's keys_read and its metric on one input, and
// `family` lists its members by their number of keys.
Samples at_equal_keys(const Cells& head, const std::vector<std::string>& family, const std::string& metric,
                      const Samples& keys);

}  // namespace attnbench
