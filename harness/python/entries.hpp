// Makes registry entries from the classes of a Python file.
#pragma once

#include "harness/core/feature_map.hpp"
#include "harness/experiment/experiment.hpp"
#include "harness/inputs/input.hpp"
#include "harness/python/declared.hpp"

namespace attnbench {

// For a class with attend, with or without features.
MethodEntry method_with_attend(const DeclaredClass& declared);
// For a class that has only features: linear attention with them.
MethodEntry method_of_features(const DeclaredClass& declared);
// The features of a class, for linear:features=NAME and other users of deterministic maps.
DeterministicMapEntry features_entry(const DeclaredClass& declared);

// For a class with draw(shape, seed). aims: it has needles(shape, seed) as well.
InputEntry input_entry(const DeclaredClass& declared, bool aims, bool causal, const std::vector<Need>& provides);
// For a class with measure(applied). matrices: it reads the attention matrices.
ExperimentEntry experiment_entry(const DeclaredClass& declared, std::vector<Metric> metrics, bool matrices);

// The spec of linear attention with the features of that class.
Params linear_params(const Declared& declared, const Params& own);

}  // namespace attnbench
