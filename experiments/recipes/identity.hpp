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
  for (const Cells& one : cells.one_by_one()) {
    const Cell cell = one.all().front().asked;
    for (const auto& [replicate, value] : one.scalar(metric))
      all.push_back({fmt::format("{} on {}, n = {}", cell.method.spec(), cell.input.spec(), cell.problem.shape.nk),
                     value, rounding});
  }
  return all_at_most(all);
}

}  // namespace attnbench
