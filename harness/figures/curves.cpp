// Panels of curves: one point for each series and x, ratios of methods, exponents and crossings.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "harness/core/spec.hpp"
#include "harness/figures/panel_drawing.hpp"
#include "harness/statistics/power_law.hpp"

namespace attnbench {

namespace {

// By what a ratio needs in common: replicate, input and problem, and x. A divisor without the axis serves every x.
std::string place_of(const StoredCell& cell, Index replicate, double x) {
  std::string text = std::isnan(x) ? "everywhere" : fmt::format("{}", x);
  text += fmt::format("\n{}", replicate);
  for (const StoredColumn& column : cell_columns)
    if (column.name != "experiment" && column.name != "method") text += "\n" + cell.column(column.name);
  return text;
}

// Divides values and closed forms by those of the method `ratio_to` in the same replicate, input and problem, at the
// same x, or at every x if that method has none. A ratio that is not above 0 is a gap.
std::vector<DrawnReplicate> divided(const PanelDrawing& drawing, const std::vector<DrawnReplicate>& all) {
  const DescribedPanel& panel = drawing.panel;
  const auto is_divisor = [&](const DrawnReplicate& one) {
    return without_parameters(drawing.cell(*one.place).column("method"), panel.x) == panel.ratio_to;
  };
  std::map<std::string, const DrawnReplicate*> divisors;
  for (const DrawnReplicate& one : all)
    if (is_divisor(one)) divisors[place_of(drawing.cell(*one.place), one.number, one.place->x)] = &one;
  std::vector<DrawnReplicate> ratios;
  for (DrawnReplicate one : all) {
    if (is_divisor(one)) continue;
    const StoredCell& cell = drawing.cell(*one.place);
    auto found = divisors.find(place_of(cell, one.number, one.place->x));
    if (found == divisors.end()) found = divisors.find(place_of(cell, one.number, NAN));
    const DrawnReplicate* divisor = found == divisors.end() ? nullptr : found->second;
    one.theory = divisor ? one.theory / divisor->theory : NAN;
    const double ratio = divisor && divisor->values && one.values ? one.values->mean() / divisor->values->mean() : NAN;
    one.ratio = ratio > 0 && std::isfinite(ratio) ? ratio : NAN;
    if (std::isnan(one.ratio)) one.values = nullptr;
    ratios.push_back(one);
  }
  return ratios;
}

struct CurveKey {
  std::string role, series;
  double x;  // NaN: a level
  bool operator<(const CurveKey& other) const {
    if (role != other.role) return role < other.role;
    if (series != other.series) return series < other.series;
    if (std::isnan(x) || std::isnan(other.x)) return !std::isnan(x) && std::isnan(other.x);
    return x < other.x;
  }
};

void say_what_has_no_axis(PanelDrawing& drawing, const std::vector<DrawnReplicate>& all) {
  std::map<std::string, std::set<std::string>> names;  // by method, its specs
  for (const DrawnReplicate& one : all)
    if (!one.place->reference && std::isnan(one.place->x))
      names[parse_spec(drawing.cell(*one.place).column("method")).name].insert(one.place->series);
  if (names.empty()) return;
  std::vector<std::string> words;
  for (const auto& [name, specs] : names)
    words.push_back(specs.size() > 1 ? fmt::format("{} ({} specs)", name, specs.size()) : name);
  drawing.note(fmt::format("Not drawn, no number for {}: {}.",
                           drawing.panel.x.empty() ? "x" : fmt::format("{}", fmt::join(drawing.panel.x, " or ")),
                           fmt::join(words, ", ")));
}

using Samples = std::map<std::string, std::map<double, std::vector<double>>>;  // by series and x

// For each series, its points in the order of x and the k-th sample of each.
template <class Use>
void for_each_curve(PanelDrawing& drawing, const Samples& samples, const Use& use) {
  for (const auto& of_series : samples) {
    const std::string& series = of_series.first;
    std::vector<DrawnPoint*> points;
    std::vector<double> x;
    std::vector<const std::vector<double>*> of_points;
    size_t shared = SIZE_MAX;
    for (const auto& of_point : of_series.second) {
      const double place = of_point.first;
      const std::vector<double>& values = of_point.second;
      const auto at = std::find_if(drawing.drawn.points.begin(), drawing.drawn.points.end(), [&](const DrawnPoint& p) {
        return p.role == "measured" && p.series == series && p.x == place && p.note.empty();
      });
      if (at == drawing.drawn.points.end()) continue;
      points.push_back(&*at);
      x.push_back(place);
      of_points.push_back(&values);
      shared = std::min(shared, values.size());
    }
    if (points.empty()) continue;
    std::vector<std::vector<double>> curves(shared);
    for (size_t k = 0; k < shared; ++k)
      for (const auto* values : of_points) curves[k].push_back((*values)[k]);
    use(points, x, curves);
  }
}

constexpr size_t exponent_points = 3;

void fit_exponents(PanelDrawing& drawing, const Samples& samples) {
  for_each_curve(drawing, samples, [&](const auto& points, const auto& x, const auto& curves) {
    std::vector<size_t> kept;  // the last points whose samples all have logarithms
    for (size_t i = 0; i < x.size(); ++i)
      if (std::isfinite(x[i]) && x[i] > 0 && std::all_of(curves.begin(), curves.end(), [&](const auto& curve) {
            return std::isfinite(curve[i]) && curve[i] > 0;
          }))
        kept.push_back(i);
    if (kept.size() > exponent_points) kept.erase(kept.begin(), kept.end() - exponent_points);
    if (kept.size() < 2) return;
    std::vector<double> exponents;
    for (const auto& curve : curves) {
      std::vector<double> at, y;
      for (const size_t i : kept) {
        at.push_back(x[i]);
        y.push_back(curve[i]);
      }
      exponents.push_back(exponent(at, y));
    }
    const Centre centre = centre_of(drawing.panel.interval, exponents);
    for (DrawnPoint* point : points) {
      point->exponent = centre.value;
      point->exponent_low = centre.low;
      point->exponent_high = centre.high;
    }
  });
}

void find_crossings(PanelDrawing& drawing, const Samples& samples) {
  for_each_curve(drawing, samples, [&](const auto& points, const auto& x, const auto& curves) {
    std::vector<double> crossings;
    for (const auto& curve : curves) {
      if (std::any_of(curve.begin(), curve.end(), [](double y) { return !(y > 0); })) return;
      crossings.push_back(last_rise_through_one(x, curve));
    }
    const Centre centre = median_of_all(crossings);  // a mean may lie beyond the points
    for (DrawnPoint* point : points) {
      point->crossing = centre.value;
      point->crossing_low = centre.low;
      point->crossing_high = centre.high;
    }
  });
}

// "Performer; Local window and 3 more"
std::string some_of(const std::set<std::string>& names) {
  constexpr std::ptrdiff_t most = 4;
  const auto end = std::next(names.begin(), std::min(std::ssize(names), most));
  const auto rest = std::ssize(names) - most;
  return fmt::format("{}{}", fmt::join(names.begin(), end, "; "), rest > 0 ? fmt::format(" and {} more", rest) : "");
}

// The replicates behind one point.
struct Pooled {
  std::vector<const PlacedCell*> cells;
  std::vector<double> values;
  Centre centre;        // NaN if a replicate has no number
  double theory = NAN;  // the mean of the closed forms
  Index gaps = 0;       // replicates without a number
};

Pooled pooled(const DescribedPanel& panel, const std::vector<const DrawnReplicate*>& group) {
  Pooled all;
  std::vector<double> closed;
  for (const DrawnReplicate* one : group) {
    all.cells.push_back(one->place);
    if (!std::isnan(one->theory)) closed.push_back(one->theory);
    if (!one->values)
      ++all.gaps;
    else if (!panel.ratio_to.empty())
      all.values.push_back(one->ratio);
    else if (panel.interval == "median")
      all.values.insert(all.values.end(), one->values->values.begin(), one->values->values.end());
    else
      all.values.push_back(one->values->mean());
  }
  if (!closed.empty()) all.theory = mean_of(closed).value;
  if (all.gaps == 0)
    all.centre = panel.ratio_to.empty() ? centre_of(panel.interval, all.values) : geometric_mean_of(all.values);
  return all;
}

DrawnPoint point_of(const Pooled& all) {
  return {.y = all.centre.value,
          .low = all.centre.low,
          .high = all.centre.high,
          .theory = all.theory,
          .replicates = std::ssize(all.cells) - all.gaps,
          .samples = std::ssize(all.values)};
}

}  // namespace

void PanelDrawing::draw_curves() {
  std::vector<DrawnReplicate> all = replicates(panel.y, true);
  if (!panel.ratio_to.empty()) all = divided(*this, all);
  say_what_has_no_axis(*this, all);
  std::map<CurveKey, std::vector<const DrawnReplicate*>> groups;
  for (const DrawnReplicate& one : all) {
    if (!one.place->reference && std::isnan(one.place->x)) continue;
    groups[{one.place->reference ? "reference" : "measured", one.place->series, one.place->x}].push_back(&one);
  }
  Samples samples;
  size_t lacking = 0;
  std::set<std::string> of;  // series
  for (const auto& [key, group] : groups) {
    const Pooled behind = pooled(panel, group);
    if (behind.gaps > 0) {
      ++lacking;
      of.insert(printed(key.series));
    }
    if (behind.gaps > 0 && std::isnan(behind.theory)) continue;
    if (key.role == "measured") samples[key.series][key.x] = behind.values;
    DrawnPoint point = point_of(behind);
    point.series = key.series;
    point.role = key.role;
    point.x = key.x;
    drawn.points.push_back(std::move(point));
    pool(behind.cells);
  }
  say_what_is_pooled();
  if (lacking > 0)
    note(fmt::format("{} of {} not drawn: a replicate has no {}.", counted(lacking, "point"), some_of(of),
                     panel.ratio_to.empty() ? panel.y : "ratio to " + panel.ratio_to));
  if (panel.slope) fit_exponents(*this, samples);
  if (panel.crossing) find_crossings(*this, samples);
}

// One point for each series, which has no place along an axis.
void PanelDrawing::draw_rows() {
  std::map<std::string, std::vector<const DrawnReplicate*>> groups;
  const auto all = replicates(panel.y, true);
  for (const DrawnReplicate& one : all) groups[one.place->series].push_back(&one);
  for (const auto& [series, group] : groups) {
    const Pooled behind = pooled(panel, group);
    if (behind.gaps > 0 && !behind.values.empty())
      note(fmt::format("{} is not shown: a replicate has no {}.", printed(series), panel.y));
    if (behind.gaps > 0 && std::isnan(behind.theory)) continue;
    DrawnPoint point = point_of(behind);
    point.series = series;
    point.role = "measured";
    drawn.points.push_back(std::move(point));
    pool(behind.cells);
  }
  say_what_is_pooled();
}

}  // namespace attnbench
