// Figures of cells that users ran: panels, axes and curves follow from how the cells differ, so that none is left out.
#pragma once

#include <nlohmann/json.hpp>

#include "harness/figures/measured_results.hpp"

namespace attnbench {

// The recipe under which results files keep these figures; each has the name of its experiment.
inline const std::string recipe_of_runs = "runs";

// One metric of cells. Empty fields follow from the cells.
struct FigureQuestion {
  std::string metric;
  std::string x;                         // a size or a parameter
  std::string log;                       // the logarithmic axes: "x", "y", "xy" or "none"
  std::vector<std::string> series = {};  // the columns that name a curve; other differences are averaged over
};

// The panels of a figure of these cells (places in results.cells()). Panels are inputs. Along x is the size or
// parameter with most numbers, on a logarithmic axis if they span it; methods without it are levels. All other
// differences between cells name the curves, or separate further panels where curves would be too many. like: what all
// panels have in common.
nlohmann::json panels_of_cells(const MeasuredResults& results, const std::vector<size_t>& places,
                               const FigureQuestion& asked, const nlohmann::json& like);

// The figure of every cell of an experiment in the results file, however many runs made them.
// stored: the figure as `attnbench run` stores it, or as this function returned it: the first panel says which metric
// is drawn and how.
nlohmann::json figure_of_cells(const MeasuredResults& results, const nlohmann::json& stored);

}  // namespace attnbench
