// The parameters `transform` and `shift` of Performer, which apply its random features to transformed inputs.
// Softmax attention does not change under q -> q G, k -> k G^-T + c; the variance of random features does. The two
// parameters choose G and c (input_transform.hpp) and work with any map of the softmax kernel.
#pragma once

#include "approximations/linear/input_transform.hpp"

namespace attnbench {

std::vector<Parameter> moved_inputs_parameters();
bool moves_inputs(const Params& params);

// The map that `features` names, applied to transformed inputs if `transform` or `shift` is set.
template <class T>
std::unique_ptr<FeatureMap<T>> make_map_of_moved_inputs(const Draw& draw);

// The theory of that map's kernel estimate.
std::optional<KernelTheory> theory_of_moved_inputs(const Params& params, const Shape& shape,
                                                   const Head<double>* calibration);

// The work of transforming the inputs.
Work work_of_moved_inputs(const Params& params, const Shape& shape);

}  // namespace attnbench
