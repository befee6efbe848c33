// The numbers of a results file as a table for a terminal: one metric, by method and along one axis, with intervals.
#pragma once

#include <string>
#include <vector>

#include "harness/store/selection.hpp"

namespace attnbench {

struct TableRoom {
  size_t width = 100, rows = 40;  // characters of a line, and rows of numbers
};

struct ShownMetric {
  std::string experiment, metric;
  std::string label = {};  // says in words or symbols what the metric is
};

// Columns are the values of the axis that has most of them: a size, or a parameter that is a number. Everything
// else that differs between the cells names the rows. Of cells that differ only in the version of their sources, the
// newest one counts. A number is the mean over replicates, or the median over the blocks of a timing, with the halves
// of its 95 % interval. A cell without a number shows how it ended. Rows and columns that do not fit are counted below
// the table. Empty if no cell of the experiment has the metric or ended otherwise than done.
std::string results_table(const ShownMetric& shown, const std::vector<CellSamples>& cells, const TableRoom& room);

}  // namespace attnbench
