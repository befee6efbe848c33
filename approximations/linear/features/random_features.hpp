// What random feature maps have in common: the parameters that say which projection vectors they draw.
#pragma once

#include "harness/core/feature_map.hpp"

namespace attnbench {

inline std::vector<Parameter> random_feature_parameters() {
  return {Parameter::integer("m", 256, "number of projection vectors omega", 1, 1 << 20),
          Parameter::entry("projection", "orthogonal", "ensemble of the projection vectors", "projections")};
}

}  // namespace attnbench
