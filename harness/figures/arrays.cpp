// Panels that draw arrays: profiles over the index, histograms of elements, and images.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "harness/figures/panel_drawing.hpp"

namespace attnbench {

namespace {

struct SeriesKey {
  std::string role, series;
  bool operator<(const SeriesKey& other) const { return std::tie(role, series) < std::tie(other.role, other.series); }
};

SeriesKey key_of(const DrawnReplicate& one) {
  return {one.place->reference ? "reference" : "measured", one.place->series};
}

constexpr size_t bins = 40;

// Edges of equally wide bins, in logarithms on a logarithmic axis; empty if no number can be drawn.
std::vector<double> edges_of(const std::vector<double>& values, const DescribedPanel& panel) {
  const auto scale = [&](double x) { return panel.log_x() ? std::log(x) : x; };
  double least = HUGE_VAL, greatest = -HUGE_VAL;
  for (const double value : values) {
    if (!std::isfinite(value) || (panel.log_x() && value <= 0)) continue;
    least = std::min(least, scale(value));
    greatest = std::max(greatest, scale(value));
  }
  if (least > greatest) return {};
  if (panel.range.size() == 2) {
    least = scale(panel.range[0]);
    greatest = scale(panel.range[1]);
  }
  if (least == greatest) {
    least -= 0.5;
    greatest += 0.5;
  }
  std::vector<double> edges;
  for (size_t i = 0; i <= bins; ++i) {
    const double at = least + (greatest - least) * static_cast<double>(i) / bins;
    edges.push_back(panel.log_x() ? std::exp(at) : at);
  }
  return edges;
}

// Where the elements of a replicate's array lie along x; empty: without the array x_metric.
std::vector<double> places_of(const DrawnReplicate& one, const PanelDrawing& drawing) {
  const DescribedPanel& panel = drawing.panel;
  if (!panel.x_metric.empty()) {
    const auto& along = drawing.results.values(one.place->cell, panel.x_metric);
    const auto at = along.find(one.number);
    return at == along.end() ? std::vector<double>() : at->second.values;
  }
  std::vector<double> index(one.values->values.size());
  std::iota(index.begin(), index.end(), static_cast<double>(panel.first_index));
  return index;
}

}  // namespace

// One point for each series and element; its x is the index, or the element of the array x_metric. Arrays of different
// lengths or different x are different series.
void PanelDrawing::draw_profiles() {
  std::map<std::pair<SeriesKey, std::vector<double>>, std::vector<DrawnReplicate>> groups;
  std::map<SeriesKey, std::set<size_t>> lengths;
  size_t not_flat = 0, without_x = 0;
  for (const DrawnReplicate& one : replicates(panel.y, false)) {
    if (one.values->shape.size() != 1) {
      ++not_flat;
      continue;
    }
    const size_t length = one.values->values.size();
    const std::vector<double> x = places_of(one, *this);
    without_x += x.size() != length;
    if (x.size() != length) continue;
    lengths[key_of(one)].insert(length);
    if (length > 0) groups[{key_of(one), x}].push_back(one);
  }
  if (not_flat > 0)
    note(fmt::format("Not drawn: {} whose {} does not have one dimension.", counted(not_flat, "replicate"), panel.y));
  if (without_x > 0)
    note(fmt::format("Not drawn: {} without as many {} as {}.", counted(without_x, "replicate"), panel.x_metric,
                     panel.y));
  for (const auto& [key, group] : groups) {
    const auto& [of, x] = key;
    const size_t length = x.size();
    const std::string series = lengths[of].size() > 1 ? fmt::format("{} ({} values)", of.series, length) : of.series;
    std::vector<const PlacedCell*> cells;
    for (const DrawnReplicate& one : group) cells.push_back(one.place);
    for (size_t i = 0; i < length; ++i) {
      std::vector<double> values, closed;
      for (const DrawnReplicate& one : group) {
        values.push_back(one.values->values[i]);
        if (panel.theory.empty()) continue;
        const auto& theory = results.values(one.place->cell, panel.theory);
        if (const auto at = theory.find(one.number); at != theory.end() && at->second.values.size() == length)
          closed.push_back(at->second.values[i]);
      }
      const Centre centre = centre_of(panel.interval, values);
      drawn.points.push_back({.series = series,
                              .role = of.role,
                              .x = panel.normalise_x ? x[i] / static_cast<double>(length) : x[i],
                              .y = centre.value,
                              .low = centre.low,
                              .high = centre.high,
                              .theory = closed.empty() ? NAN : mean_of(closed).value,
                              .replicates = std::ssize(group),
                              .samples = std::ssize(group)});
    }
    pool(cells);
  }
  say_what_is_pooled();
}

// One point for each series and bin: the share of the series' elements, of all replicates, that lie in it.
void PanelDrawing::draw_histograms() {
  struct Group {
    std::vector<double> values;
    std::vector<const PlacedCell*> cells;
  };
  std::map<SeriesKey, Group> groups;
  std::vector<double> all;
  for (const DrawnReplicate& one : replicates(panel.y, false)) {
    Group& group = groups[key_of(one)];
    group.values.insert(group.values.end(), one.values->values.begin(), one.values->values.end());
    group.cells.push_back(one.place);
    all.insert(all.end(), one.values->values.begin(), one.values->values.end());
  }
  const std::vector<double> edges = edges_of(all, panel);
  if (edges.empty()) return;
  size_t beyond = 0;
  for (const auto& [key, group] : groups) {
    std::vector<size_t> counts(bins, 0);
    for (const double value : group.values) {
      if (!(value >= edges.front() && value <= edges.back())) {
        ++beyond;
        continue;
      }
      const auto above = std::upper_bound(edges.begin(), edges.end(), value);
      ++counts[std::min<size_t>(static_cast<size_t>(above - edges.begin()), bins) - 1];
    }
    for (size_t i = 0; i < bins; ++i)
      drawn.points.push_back({.series = key.series,
                              .role = key.role,
                              .x = panel.log_x() ? std::sqrt(edges[i] * edges[i + 1]) : (edges[i] + edges[i + 1]) / 2,
                              .x_low = edges[i],
                              .x_high = edges[i + 1],
                              .y = static_cast<double>(counts[i]) / static_cast<double>(group.values.size()),
                              .replicates = std::ssize(group.cells),
                              .samples = std::ssize(group.values)});
    pool(group.cells);
  }
  if (beyond > 0) note(fmt::format("{} of {} values lie beyond the axis.", beyond, all.size()));
  say_what_is_pooled();
}

// The array of the first replicate of the first cell.
void PanelDrawing::draw_image() {
  std::set<size_t> cells;
  const DrawnReplicate* first = nullptr;
  const auto all = replicates(panel.y, false);
  for (const DrawnReplicate& one : all) {
    if (one.values->shape.size() != 2) continue;
    cells.insert(one.place->cell);
    if (!first || one.number < first->number) first = &one;
  }
  if (!first) return;
  if (cells.size() > 1) note(fmt::format("Drawn is the first of {} cells.", cells.size()));
  const auto& values = first->values->values;
  const auto negative = std::count_if(values.begin(), values.end(), [](double x) { return x < 0; });
  if (panel.floor > 0 && negative > 0)
    note(fmt::format("{:.1f} % of the weights are negative, in orange.",
                     100.0 * static_cast<double>(negative) / static_cast<double>(values.size())));
  drawn.image = {cell(*first->place).key, first->number};
  drawn.points.push_back(
      {.series = first->place->series, .role = "image", .replicates = 1, .samples = std::ssize(values)});
}

}  // namespace attnbench
