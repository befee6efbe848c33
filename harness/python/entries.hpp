// Makes registry entries from the classes of a Python file.
#pragma once

#include "harness/core/feature_map.hpp"
#include "harness/python/declared.hpp"

namespace attnbench {

// For a class with attend, with or without features.
MethodEntry method_with_attend(const DeclaredClass& declared);
// For a class that has only features: linear attention with them.
MethodEntry method_of_features(const DeclaredClass& declared);
// The features of a class, for linear:features=NAME and other users of deterministic maps.
DeterministicMapEntry features_entry(const DeclaredClass& declared);

// The spec of linear attention with the features of that class.
Params linear_params(const Declared& declared, const Params& own);

}  // namespace attnbench
