// The table that `attnbench export` writes and that attnbench.read returns.
#pragma once

#include <string>
#include <vector>

#include "harness/store/selection.hpp"

namespace attnbench {

// After the columns of the cell there is one column per parameter of its method, input and experiment, empty where a
// cell has none; then these. index: only in a table with arrays.
inline constexpr StoredColumn row_columns[] = {
    {"replicate", "integer", "which independent repetition, from 0"},
    {"ending", "text", "done, skipped, failed, crashed, timed out, out of memory or invalid"},
    {"reason", "text", "why it ended otherwise than done"},
    {"metric", "text", "what was measured (attnbench list metrics)"},
    {"unit", "text", "unit of value; 1 for ratios and counts"},
    {"index", "text", "place in an array, as 3 or 3;7 (row;column); empty for a scalar"},
    {"value", "real", "the number; inf, -inf and nan as such (strings in JSON)"},
};

// They differ between equal runs.
inline constexpr StoredColumn clock_columns[] = {
    {"wall_seconds", "real", "wall time of the replicate"},   {"finished", "text", "when the replicate ended (UTC)"},
    {"run", "integer", "number of the run that recorded it"}, {"started", "text", "when that run started (UTC)"},
    {"command", "text", "command line of that run"},
};

// A row for each number. A replicate that has none of the metrics has one row without a value, and a replicate that
// lacks a metric which `metrics` names has a row without a value for it. Rows are sorted by content, so that equal
// results give equal text in any order of the runs.
struct ExportRequest {
  enum class Format { csv, json };

  Format format = Format::csv;
  std::vector<std::string> metrics = {};  // only these, of the experiments that measure them; empty: all
  std::vector<CellCondition> where = {};
  bool wide = false;    // instead, a row for each replicate, with one column per metric
  bool arrays = false;  // also arrays, with a row for each element
  bool clock = false;   // also clock_columns
};

// Whether an array of that shape holds samples of a timing, one a block of turns. A table without arrays has their
// median.
bool is_samples(const StoredCell& cell, const std::string& shape);

}  // namespace attnbench
