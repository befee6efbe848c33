// Other values of a spec's parameters, for the claims that ask what each of them does.
#pragma once

#include "harness/claims/drawing.hpp"

namespace attnbench {

// The spec with other values of one parameter: the other flag, choices and entries; of a number the least, the largest,
// 8, half and twice of it. The first are those that the short heads of `check` show best. Leaves out what the spec's
// own check refuses. Empty for a text, whose other values are unknown.
std::vector<Params> other_values(const Params& spec, const Parameter& parameter);

// "window=8": how the first differs from the second, for the reader of a report.
std::string difference_of(const Params& changed, const Params& spec);

// The spec with its budget at 8 and at 1, or at the least that it may be, where it has one and a larger value.
std::vector<Params> with_small_budgets(const Params& spec);

// The cases of Claims::exact_when, which semicolons part.
std::vector<std::string> cases_of(const std::string& exact_when);

// The same head, with the further inputs that these parameters ask for.
Probe for_method(const Probe& one, const Params& params, std::uint64_t seed);

// A draw of a changed spec, or null where it refuses this shape.
std::unique_ptr<Approximation<double>> drawn_if_possible(const Subject& subject, const Params& params,
                                                         const Shape& shape, std::uint64_t seed);

}  // namespace attnbench
