// The row of a cell in a results file.
#pragma once

#include "harness/experiment/cell.hpp"
#include "harness/store/row.hpp"

namespace attnbench {

// timing: the cell's key includes the number of threads and this machine.
CellRow row_of(const Cell& cell, bool timing);

}  // namespace attnbench
