// A panel as a results file describes it (docs/figures.md), and the cells that it draws.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/figures/measured_results.hpp"

namespace attnbench {

struct DescribedPanel {
  std::string title, kind;
  std::optional<std::vector<std::string>> cells;  // keys; nullopt: all cells that meet the conditions
  std::vector<CellCondition> where;               // a column may have several values
  std::vector<std::string> x, y_axis, series;
  std::string y, theory, interval, ratio_to, x_metric, area, bound_x;
  std::string x_scale, y_scale;
  std::vector<std::string> references, ratio, bound, points;
  std::vector<double> range;
  bool slope = false, crossing = false, normalise_x = false, winner = false;
  Index first_index = 1;
  double y_most = 0, floor = 0;

  bool log_x() const { return x_scale.starts_with("log"); }
  bool log_y() const { return y_scale.starts_with("log"); }
};

DescribedPanel described_panel(const nlohmann::json& description);

// A cell with its place in a panel.
struct PlacedCell {
  size_t cell = 0;            // position in MeasuredResults::cells()
  double x = 0, upwards = 0;  // NaN: the cell has no number for that axis
  std::string series;         // name of its curve
  bool reference = false;     // drawn as a level over the whole range
};

std::vector<PlacedCell> placed_cells(const MeasuredResults& results, const DescribedPanel& panel);

// The spec without its own arguments of these names. A spec that is the value of a parameter keeps its arguments; parts
// without a key (combine:[local:window=8],[performer]) lose them as well.
std::string without_parameters(const std::string& spec, const std::vector<std::string>& names);

}  // namespace attnbench
