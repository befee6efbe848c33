// Makes entries of the registries from the classes of a Python file.
#pragma once

#include "harness/core/feature_map.hpp"
#include "harness/python/declared.hpp"

namespace attnbench {

// A class with attend, with or without features as well.
MethodEntry method_with_attend(const DeclaredClass& declared);
// A class with features alone: linear attention with them.
MethodEntry method_of_features(const DeclaredClass& declared);
// Its features, for linear:features=NAME and whatever else takes deterministic maps.
DeterministicMapEntry features_entry(const DeclaredClass& declared);

// The spec of linear attention with its features.
Params linear_params(const Declared& declared, const Params& own);

}  // namespace attnbench
