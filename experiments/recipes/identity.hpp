// Judges identities between code paths.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "harness/runner/recipe.hpp"

namespace attnbench {

// A metric that is 0 up to rounding, in every replicate of every cell.
inline Finding identity(const Cells& cells, const std::string& metric, double rounding) {
  std::vector<Bounded> all;
  for (const RecipeCell& cell : cells.all()) {
    const Shape& shape = cell.asked.problem.shape;
    const Cells one = cells.where({{"experiment", cell.asked.experiment.spec()},
                                   {"method", cell.asked.method.spec()},
                                   {"input", cell.asked.input.spec()},
                                   {"n", shape.nk},
                                   {"d", shape.d},
                                   {"causal", shape.mask.causal ? 1 : 0}});
    for (const auto& [replicate, value] : one.scalar(metric))
      all.push_back({fmt::format("{} on {}, n = {}", cell.asked.method.spec(), cell.asked.input.spec(), shape.nk),
                     value, rounding});
  }
  return all_at_most(all);
}

}  // namespace attnbench
