#include "harness/figures/panel_drawing.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "harness/figures/looks.hpp"
#include "harness/statistics/intervals.hpp"
#include "harness/statistics/moments.hpp"

namespace attnbench {

PanelDrawing::PanelDrawing(const MeasuredResults& of, const DescribedPanel& described)
    : results(of), panel(described), placed(placed_cells(of, described)) {}

std::vector<DrawnReplicate> PanelDrawing::replicates(const std::string& metric, bool gaps) const {
  std::vector<DrawnReplicate> all;
  for (const PlacedCell& place : placed) {
    const auto& values = results.values(place.cell, metric);
    static const std::map<Index, MeasuredValues> nothing;
    const auto& theory = panel.theory.empty() ? nothing : results.values(place.cell, panel.theory);
    for (const auto& replicate : results.replicates(place.cell)) {
      if (!replicate.done()) continue;
      const auto found = values.find(replicate.number);
      if (found == values.end() && !gaps) continue;
      const auto closed = theory.find(replicate.number);
      all.push_back({.place = &place,
                     .number = replicate.number,
                     .values = found == values.end() ? nullptr : &found->second,
                     .theory = closed == theory.end() ? NAN : closed->second.mean()});
    }
  }
  return all;
}

void PanelDrawing::pool(const std::vector<const PlacedCell*>& of_a_point) {
  std::map<std::string, std::set<std::string>> values;
  std::set<size_t> cells;
  for (const PlacedCell* place : of_a_point) {
    if (!cells.insert(place->cell).second) continue;
    const StoredCell& one = cell(*place);
    for (const StoredColumn& column : cell_columns) {
      const std::string name(column.name);
      values[name].insert(one.column(column.name));
    }
    for (const auto& [name, value] : one.parameters.items()) values[name].insert(value.dump());
  }
  if (cells.size() < 2) return;
  std::set<std::string> specs, others;
  for (const auto& [name, found] : values) {
    if (found.size() < 2) continue;
    (name == "experiment" || name == "method" || name == "input" ? specs : others).insert(name);
  }
  pooled_.merge(others.empty() ? specs : others);
}

std::string PanelDrawing::printed(const std::string& series) const {
  return series_look(results, panel, cells_of_series(placed), series).name;
}

void PanelDrawing::say_what_is_pooled() {
  if (!pooled_.empty()) note(fmt::format("Each point pools cells that differ in {}.", fmt::join(pooled_, ", ")));
}

namespace {
bool any_nan(const std::vector<double>& samples) {
  return std::any_of(samples.begin(), samples.end(), [](double x) { return std::isnan(x); });
}
Centre with(double value, const Interval& interval) {
  if (std::isinf(interval.low) && std::isinf(interval.high)) return {value, NAN, NAN};
  return {value, interval.low, interval.high};
}
}  // namespace

Centre mean_of(const std::vector<double>& samples) {
  if (samples.empty() || any_nan(samples)) return {};
  const Moments all = moments(samples);
  if (!std::isfinite(all.mean)) return {all.mean, NAN, NAN};
  return with(all.mean, mean_interval(all, drawn_error_rate));
}

Centre median_of_all(const std::vector<double>& samples) {
  if (samples.empty() || any_nan(samples)) return {};
  if (samples.size() < least_for_median(drawn_error_rate)) return {median(samples), NAN, NAN};
  return with(median(samples), median_interval(samples, drawn_error_rate));
}

Centre geometric_mean_of(const std::vector<double>& samples) {
  std::vector<double> logs;
  for (const double sample : samples) logs.push_back(std::log(sample));
  const Centre centre = mean_of(logs);
  return {std::exp(centre.value), std::exp(centre.low), std::exp(centre.high)};
}

std::string counted(size_t count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

namespace {

// One point for each series, x, ending and reason other than done.
void draw_endings(PanelDrawing& drawing) {
  std::map<std::tuple<std::string, double, std::string, std::string>, Index> counts;
  std::map<std::tuple<std::string, std::string, std::string>, Index> without_x;
  const bool trade = drawing.panel.kind == "trade";  // a cell that was not done has no place along a metric
  for (const PlacedCell& place : drawing.placed)
    for (const auto& replicate : drawing.results.replicates(place.cell)) {
      if (replicate.done()) continue;
      if (trade || std::isnan(place.x))
        ++without_x[{place.series, replicate.ending, replicate.reason}];
      else
        ++counts[{place.series, place.x, replicate.ending, replicate.reason}];
    }
  const auto add = [&](const std::string& series, double x, const std::string& ending, const std::string& reason,
                       Index count) {
    drawing.drawn.points.push_back({.series = series,
                                    .role = "ending",
                                    .x = x,
                                    .replicates = count,
                                    .note = reason.empty() ? ending : ending + ": " + reason});
  };
  for (const auto& [key, count] : counts)
    add(std::get<0>(key), std::get<1>(key), std::get<2>(key), std::get<3>(key), count);
  for (const auto& [key, count] : without_x) add(std::get<0>(key), NAN, std::get<1>(key), std::get<2>(key), count);
}

bool is_value(const DrawnPoint& point) { return point.role == "measured" || point.role == "reference"; }

// Notes on points that the axes cannot show, and a sentence that counts them.
void mark_undrawable(PanelDrawing& drawing) {
  const DescribedPanel& panel = drawing.panel;
  std::map<std::string, size_t> counts;
  for (DrawnPoint& point : drawing.drawn.points) {
    // A point whose measurement has gaps stays for its closed form.
    if (!is_value(point) || (std::isnan(point.y) && !std::isnan(point.theory))) continue;
    if (!std::isfinite(point.y) || std::isinf(point.x))
      point.note = "not finite";
    else if (panel.kind != "table" && ((panel.log_y() && point.y <= 0) || (panel.log_x() && point.x <= 0)))
      point.note = "not positive on a log axis";
    if (!point.note.empty()) ++counts[point.note];
  }
  for (const char* words : {"not finite", "not positive on a log axis"})
    if (counts[words] > 0) drawing.note(fmt::format("{} not drawn: {}.", counted(counts[words], "point"), words));
}

// Lists the points of a trade above y_most. Drawn, they would flatten the rest.
void say_what_lies_beyond(PanelDrawing& drawing) {
  const double most = drawing.panel.y_most > 0 ? drawing.panel.y_most : HUGE_VAL;
  std::map<std::string, std::vector<double>> beyond;
  for (DrawnPoint& point : drawing.drawn.points)
    if (point.role == "measured" && point.y > most) {
      point.note = fmt::format("above {:g}", most);
      beyond[point.series].push_back(point.y);
    }
  std::vector<std::string> words;
  for (const auto& [series, y] : beyond) {
    const auto [least, greatest] = std::minmax_element(y.begin(), y.end());
    const std::string name = drawing.printed(series);
    words.push_back(y.size() == 1 ? fmt::format("{} ({:.2g})", name, *least)
                                  : fmt::format("{} ({:.2g} to {:.2g})", name, *least, *greatest));
  }
  if (!words.empty()) drawing.note(fmt::format("Beyond the axes: {}.", fmt::join(words, ", ")));
}

// A level more than two decades below all points, such as the rounding error of float, would flatten the rest.
void say_what_lies_far_below(PanelDrawing& drawing) {
  if (drawing.panel.kind != "curve" || !drawing.panel.log_y()) return;
  double least = HUGE_VAL;
  for (const DrawnPoint& point : drawing.drawn.points)
    if (point.role == "measured" && point.note.empty()) least = std::min(least, std::isnan(point.y) ? least : point.y);
  if (std::isinf(least)) return;
  for (DrawnPoint& point : drawing.drawn.points)
    if (point.role == "reference" && point.note.empty() && std::isnan(point.x) && point.y < least / 100) {
      point.note = "far below";
      drawing.note(fmt::format("{} lies far below the axes, at {:.1e}.", drawing.printed(point.series), point.y));
    }
}

// Levels of methods that lack the parameter of the axis. Readers know it of softmax and the mean of V.
void say_what_lacks_the_axis(PanelDrawing& drawing) {
  const DescribedPanel& panel = drawing.panel;
  if (panel.kind != "curve" || panel.x.empty()) return;
  std::set<std::string> names;
  for (const PlacedCell& place : drawing.placed) {
    const std::string& method = drawing.cell(place).column("method");
    if (place.reference && std::isnan(place.x) && method != "softmax" && method != "uniform")
      names.insert(drawing.printed(place.series));
  }
  if (!names.empty())
    drawing.note(fmt::format("Without {}, and so a level: {}.", fmt::join(panel.x, " or "), fmt::join(names, "; ")));
}

std::string joined(const std::vector<std::string>& names) { return fmt::format("{}", fmt::join(names, " or ")); }

// Why a panel without a point is empty.
std::string why_empty(const PanelDrawing& drawing) {
  const DescribedPanel& panel = drawing.panel;
  if (drawing.placed.empty()) return "no data: no cell of the results meets the conditions";
  std::vector<size_t> cells;
  bool any = false, done = false;
  for (const PlacedCell& place : drawing.placed) {
    cells.push_back(place.cell);
    for (const auto& replicate : drawing.results.replicates(place.cell)) {
      any = true;
      done |= replicate.done();
    }
  }
  if (any && !done) return "no data: nothing was done, see below";
  const auto there = drawing.results.metrics_of(cells);
  if (std::find(there.begin(), there.end(), panel.y) == there.end())
    return fmt::format("no data: none of the cells ({}) has {}; they have {}", cells.size(), panel.y,
                       there.empty() ? "no measurement" : fmt::format("{}", fmt::join(there, ", ")));
  std::string axis = panel.x.empty() ? "its index" : joined(panel.x);
  if (panel.kind == "map") axis += " and " + joined(panel.y_axis);
  return fmt::format("no data: no value of {} can be drawn against {}", panel.y, axis);
}

void say_what_is_absent(PanelDrawing& drawing, const std::vector<DrawnReplicate>& measured) {
  const auto& points = drawing.drawn.points;
  if (std::none_of(points.begin(), points.end(), [](const DrawnPoint& point) {
        return point.role != "reference" && point.role != "ending" && point.note.empty();
      })) {
    drawing.drawn.missing = why_empty(drawing);
    return;
  }
  std::vector<std::string> absent;
  for (const auto& name : drawing.panel.references)
    if (std::none_of(measured.begin(), measured.end(), [&](const DrawnReplicate& one) {
          return one.values && one.place->reference && drawing.cell(*one.place).column("method") == name;
        }))
      absent.push_back(printed_spec("methods", name));
  if (!absent.empty()) drawing.note(fmt::format("No data for the reference {}.", fmt::join(absent, ", ")));
}

}  // namespace

DrawnPanel drawn_panel(const MeasuredResults& results, const DescribedPanel& panel, const WhichIsBetter& which) {
  PanelDrawing drawing(results, panel);
  if (panel.kind == "profile")
    drawing.draw_profiles();
  else if (panel.kind == "histogram")
    drawing.draw_histograms();
  else if (panel.kind == "image")
    drawing.draw_image();
  else if (panel.kind == "trade")
    drawing.draw_trades();
  else if (panel.kind == "map")
    drawing.draw_tiles();
  else if (panel.kind == "table")
    drawing.draw_rows();
  else
    drawing.draw_curves();
  draw_endings(drawing);
  if (panel.kind == "trade")
    say_what_lies_beyond(drawing);
  else
    mark_undrawable(drawing);
  say_what_lies_far_below(drawing);
  say_what_lacks_the_axis(drawing);
  const auto measured = drawing.replicates(panel.y, false);
  say_what_is_absent(drawing, measured);
  if (!measured.empty()) {
    const std::string& unit = measured.front().values->unit;
    if (panel.ratio_to.empty()) drawing.drawn.unit = unit;
    drawing.drawn.more_is_better = which(panel.y, unit) == Better::more;
  }
  return std::move(drawing.drawn);
}

}  // namespace attnbench
