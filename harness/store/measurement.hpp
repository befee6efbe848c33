// A number or an array that an experiment measures, as the results file keeps it.
#pragma once

#include <string>
#include <vector>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

// One number (shape empty, one value) or one array (spectrum, per-row measure, time samples) with its shape, row-major.
struct Measurement {
  std::string metric;
  std::string unit;  // "1" for ratios and counts, "s", "B", ...
  std::vector<Index> shape;
  std::vector<double> values;
};

}  // namespace attnbench
