// For inputs that add a term to the logits of another input. A term that is a product of a number of the query and a
// number of the key is a further coordinate of both, and a term of one key alone is a further key. So every method
// takes it, exact softmax included, and no engine knows of it.
#pragma once

#include "harness/inputs/input.hpp"

namespace attnbench {

// The parameter of such an input that names the other one.
Parameter inner_parameter();
// The input whose logits get the term. Throws Misuse if the spec names several.
Params inner_of(const Params& input);

// A hash of the files of the inner input, if it has any.
std::string inner_content(const Params& input);

// Limits of an input whose heads have `wider(d)` columns where those of the inner one have d, and `more` keys.
InputLimits wider_limits(const Params& input, const std::function<Index(Index)>& wider, Index more = 0);

// Q, K and V of the inner input, of other sizes, so that q.k is that of the inner input at its own width once both are
// scaled by d^-1/4 of the outer width.
HeadData<double> inner_head(const Params& input, const InputRequest& request, Index nq, Index nk, Index d);

// A product of coordinates of this size is 1 after the scaling by d^-1/4 of both.
double unit_coordinate(Index d);

}  // namespace attnbench
