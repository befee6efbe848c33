// Panels of one metric against another: the median of one, and the geometric mean of the other.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "harness/figures/panel_drawing.hpp"

namespace attnbench {

namespace {

struct PointKey {
  std::string series, method;
  std::vector<std::string> values;  // of the columns whose values are separate points
  bool operator<(const PointKey& other) const {
    return std::tie(series, method, values) < std::tie(other.series, other.method, other.values);
  }
};

// All samples of a metric, over replicates, experiments and all other differences of cells.
std::map<PointKey, std::vector<double>> samples_of(const PanelDrawing& drawing, const std::string& metric) {
  std::map<PointKey, std::vector<double>> all;
  if (metric.empty()) return all;
  for (const DrawnReplicate& one : drawing.replicates(metric, false)) {
    const StoredCell& cell = drawing.cell(*one.place);
    PointKey key{one.place->series, cell.column("method"), {}};
    bool whole = true;
    for (const auto& column : drawing.panel.points) {
      const auto value = cell.value(column);
      whole = whole && value;
      if (value) key.values.push_back(*value);
    }
    if (!whole) continue;
    auto& samples = all[key];
    samples.insert(samples.end(), one.values->values.begin(), one.values->values.end());
  }
  return all;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

void PanelDrawing::draw_trades() {
  const auto along = samples_of(*this, panel.x_metric), bounded = samples_of(*this, panel.bound_x);
  const auto areas = samples_of(*this, panel.area);
  for (const auto& [key, samples] : samples_of(*this, panel.y)) {
    const bool bound = contains(panel.bound, key.method.substr(0, key.method.find(':')));
    const bool level = contains(panel.references, key.method);
    const auto& places = bound ? bounded : along;
    const auto place = places.find(key);
    if (!level && place == places.end()) continue;
    const Centre x = level ? Centre{} : median_of_all(place->second);
    // A method without error has no place on a logarithmic axis, and is drawn at its x.
    const bool exact = std::any_of(samples.begin(), samples.end(), [](double sample) { return !(sample > 0); });
    const Centre y = exact ? Centre{} : geometric_mean_of(samples);
    const auto area = areas.find(key);
    drawn.points.push_back({.series = bound ? key.series + " (keys given)" : key.series,
                            .role = exact || bound || level ? "reference" : "measured",
                            .x = x.value,
                            .x_low = x.low,
                            .x_high = x.high,
                            .y = y.value,
                            .low = y.low,
                            .high = y.high,
                            .value = area == areas.end() ? NAN : median_of_all(area->second).value,
                            .replicates = std::ssize(samples),
                            .samples = std::ssize(samples)});
  }
}

}  // namespace attnbench
