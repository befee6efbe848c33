// Two conventions for the inputs of feature maps: raw q and k, as in the papers of elementwise maps, or q and k times
// d^-1/4, as elsewhere in this project. Recipes judge both.
#pragma once

#include <array>
#include <cmath>
#include <string>

#include "harness/statistics/estimate.hpp"

namespace attnbench {

struct Convention {
  std::string name, parameter;
  // The method under this convention.
  std::string of(const std::string& method) const {
    return method + (method.find(':') == std::string::npos ? ":" : ",") + parameter;
  }
};
inline const std::array<Convention, 2> conventions{
    {{"raw q and k", "inputs=unscaled"}, {"q and k times d^-1/4", "inputs=scaled"}}};

// The exponent of a power law between two points of an axis that differ by `factor`, for each replicate.
inline Samples exponents_between(const Samples& before, const Samples& after, double factor) {
  Samples all = quotients(after, before);
  for (auto& [replicate, value] : all) value = std::log(value) / std::log(factor);
  return all;
}

}  // namespace attnbench
