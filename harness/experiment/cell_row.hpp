// The row of a cell in a results file.
#pragma once

#include "harness/experiment/cell.hpp"
#include "harness/store/store.hpp"

namespace attnbench {

// timing: threads and this machine belong to the cell.
CellRow row_of(const Cell& cell, bool timing);

}  // namespace attnbench
