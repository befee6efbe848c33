// The figure of an experiment that users ran: every cell of it in the results file, however many runs made them.
#pragma once

#include <nlohmann/json.hpp>

#include "harness/figures/measured_results.hpp"

namespace attnbench {

// The recipe under which results files keep these figures; each has the name of its experiment.
inline const std::string recipe_of_runs = "runs";

// The panels of such a figure. Panels are inputs. Along x is the size or parameter with most numbers, on a logarithmic
// axis if they span it; methods without it are levels. All other differences between cells name the curves, or separate
// further panels where curves would be too many.
// stored: the figure as `attnbench run` stores it, or as this function returned it: the first panel says which metric
// is drawn and how.
nlohmann::json figure_of_cells(const MeasuredResults& results, const nlohmann::json& stored);

}  // namespace attnbench
