// Inputs of a method beside Q, K and V: their shapes, and the numbers that a caller gives.
#pragma once

#include "harness/core/approximation.hpp"

namespace attnbench {

// The needs of a spec's entry and of the methods inside it, each name once.
std::vector<Need> needs_of(const Params& method);

// Rows and columns at that shape. Throws Misuse for a word that names no size.
std::pair<Index, Index> size_of(const Need& need, const Shape& shape);
// "n x 1"
std::string words_of(const Need& need);
// With the axes that the need's words name.
Extra extra_of(const Need& need, Matrix<double> numbers);

// The inputs that the spec needs, out of those that are given; positions that nobody gave are counted. Throws Misuse
// for a wrong shape, NaN or infinity, and Skip for an input that is missing. `giver` names who gives them ("the input
// gaussian"), and advice(need) ends the message.
Extras extras_for(const Params& method, const Shape& shape, const Extras& given, const std::string& giver,
                  const std::function<std::string(const Need&)>& advice);

// Numbers for the needs of a spec where nobody gives any, by Need::values. float represents them exactly.
Extras drawn_extras(const Params& method, const Shape& shape, std::uint64_t seed);

}  // namespace attnbench
