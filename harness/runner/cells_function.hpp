// Functions of numbers over several cells, which expressions of recipes call by name, such as
// rank_correlation(relative_entropy, exact.error): from the numbers of one replicate to one number.
#pragma once

#include <string>
#include <vector>

#include "harness/core/registry.hpp"

namespace attnbench {

struct CellsFunction {
  static constexpr const char* kind = "function over cells";
  static constexpr const char* plural = "cells-functions";

  // One column per argument: its number in every cell, or a single number.
  using Columns = std::vector<std::vector<double>>;

  Description text;
  std::vector<Parameter> parameters = {};
  size_t arguments = 1;
  double (*value)(const Columns&);  // NaN: this replicate has no such number
};

extern template class Registry<CellsFunction>;

}  // namespace attnbench
