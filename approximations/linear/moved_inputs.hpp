// The parameters `transform` and `shift` of Performer: its random features are of moved inputs.
// Softmax attention does not change when q -> q G, k -> k G^-T + c; the variance of random features does. Both
// parameters take what is free (input_transform.hpp), with any map of the softmax kernel.
#pragma once

#include "approximations/linear/input_transform.hpp"

namespace attnbench {

std::vector<Parameter> moved_inputs_parameters();
bool moves_inputs(const Params& params);

// The map that `features` names, of moved inputs where the parameters say so.
template <class T>
std::unique_ptr<FeatureMap<T>> make_map_of_moved_inputs(const Draw& draw);

// What that map's kernel estimates.
std::optional<KernelTheory> theory_of_moved_inputs(const Params& params, const Shape& shape,
                                                   const Head<double>* calibration);

// Work of moving them.
Work work_of_moved_inputs(const Params& params, const Shape& shape);

}  // namespace attnbench
