#include "harness/figures/described_panel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "harness/core/spec.hpp"
#include "harness/errors/error.hpp"

namespace attnbench {

namespace {

std::vector<std::string> texts_in(const nlohmann::json& of, const char* name) {
  const auto found = of.find(name);
  if (found == of.end() || found->is_null()) return {};
  const auto text = [](const nlohmann::json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
  };
  std::vector<std::string> all;
  if (found->is_array())
    for (const auto& value : *found) all.push_back(text(value));
  else if (!text(*found).empty())
    all.push_back(text(*found));
  return all;
}

bool is_problem(const std::string& column) {
  return column == "experiment" || column == "input" ||
         (column != "method" && std::any_of(std::begin(cell_columns), std::end(cell_columns),
                                            [&](const StoredColumn& known) { return known.name == column; }));
}

bool meets(const StoredCell& cell, const CellCondition& condition, const std::vector<std::string>& axes) {
  const auto value = cell.value(condition.column);
  if (!value) return false;
  if (same_value(*value, condition.value)) return true;
  if (condition.column == "experiment") return value->substr(0, value->find(':')) == condition.value;
  return (condition.column == "method" || condition.column == "input") && !axes.empty() &&
         without_parameters(*value, axes) == condition.value;
}

// Conditions on one column are alternatives.
bool meets(const StoredCell& cell, const std::vector<CellCondition>& where, const std::vector<std::string>& axes) {
  std::map<std::string, bool> met;
  for (const auto& condition : where) {
    bool& of_column = met.emplace(condition.column, false).first->second;
    of_column = of_column || meets(cell, condition, axes);
  }
  return std::all_of(met.begin(), met.end(), [](const auto& of_column) { return of_column.second; });
}

double along(const StoredCell& cell, const std::vector<std::string>& names) {
  for (const auto& name : names)
    if (const auto value = cell.value(name))
      if (const auto number = number_in(*value)) return *number;
  return NAN;
}

std::string part_of_name(const StoredCell& cell, const std::string& column, const std::vector<std::string>& axes) {
  const auto value = cell.value(column);
  if (!value) return "";
  if (column == "method" || column == "input" || column == "experiment") return without_parameters(*value, axes);
  const auto number = number_in(*value);
  return number && std::abs(*number) < 0x1p53 ? fmt::format("{}={:.15g}", column, *number)
                                              : fmt::format("{}={}", column, *value);
}

std::string series_of(const StoredCell& cell, const std::vector<std::string>& columns,
                      const std::vector<std::string>& axes) {
  std::string name;
  for (const auto& column : columns)
    if (const std::string part = part_of_name(cell, column, axes); !part.empty())
      name += (name.empty() ? "" : " ") + part;
  return name;
}

}  // namespace

DescribedPanel described_panel(const nlohmann::json& of) {
  DescribedPanel panel;
  const auto text = [&](const char* name) { return of.value(name, std::string()); };
  panel.title = text("title");
  panel.kind = text("kind");
  if (of.contains("cells")) panel.cells = texts_in(of, "cells");
  if (const auto where = of.find("where"); where != of.end())
    for (const auto& [column, wanted] : where->items())
      for (const auto& value : texts_in(*where, column.c_str())) panel.where.push_back({column, value});
  panel.x = texts_in(of, "x");
  panel.y_axis = texts_in(of, "y_axis");
  panel.series = texts_in(of, "series");
  if (panel.series.empty()) panel.series = {"method"};
  panel.y = text("y");
  panel.theory = text("theory");
  panel.interval = of.value("interval", std::string("mean"));
  panel.ratio_to = text("ratio_to");
  panel.x_metric = text("x_metric");
  panel.area = text("area");
  panel.bound_x = text("bound_x");
  panel.x_scale = text("x_scale");
  panel.y_scale = text("y_scale");
  panel.references = texts_in(of, "references");
  panel.ratio = texts_in(of, "ratio");
  panel.bound = texts_in(of, "bound");
  panel.points = texts_in(of, "points");
  panel.range = of.value("range", std::vector<double>());
  panel.slope = of.value("slope", false);
  panel.crossing = of.value("crossing", false);
  panel.normalise_x = of.value("normalise_x", false);
  panel.winner = of.value("winner", false);
  panel.first_index = of.value("first_index", Index{1});
  panel.y_most = of.value("y_most", 0.0);
  panel.floor = of.value("floor", 0.0);
  return panel;
}

std::vector<PlacedCell> placed_cells(const MeasuredResults& results, const DescribedPanel& panel) {
  std::vector<std::string> axes = panel.x;
  axes.insert(axes.end(), panel.y_axis.begin(), panel.y_axis.end());
  std::vector<std::string> references = panel.references;
  if (!panel.ratio_to.empty()) references.push_back(panel.ratio_to);
  // A reference lacks the parameters of the methods beside it, so only conditions on the problem bind it.
  std::vector<CellCondition> of_problem;
  for (const auto& condition : panel.where)
    if (is_problem(condition.column)) of_problem.push_back(condition);

  std::vector<size_t> candidates;
  if (panel.cells) {
    candidates = results.positions(*panel.cells);
  } else {
    for (size_t i = 0; i < results.cells().size(); ++i) candidates.push_back(i);
  }
  std::vector<PlacedCell> placed;
  std::set<std::string> machines;
  for (const size_t i : candidates) {
    const StoredCell& cell = results.cells()[i];
    const bool reference = std::find(references.begin(), references.end(), cell.column("method")) != references.end() &&
                           meets(cell, of_problem, {});
    if (!reference && !meets(cell, panel.where, axes)) continue;
    placed.push_back({.cell = i,
                      .x = along(cell, panel.x),
                      .upwards = along(cell, panel.y_axis),
                      .series = series_of(cell, panel.series, axes),
                      .reference = reference});
    if (!cell.column("machine").empty()) machines.insert(cell.column("machine"));
  }
  if (machines.size() > 1)  // timings of two machines are not a sample of one
    for (PlacedCell& one : placed)
      if (const auto& machine = results.cells()[one.cell].column("machine"); !machine.empty())
        one.series += " on " + machine;
  return placed;
}

std::string without_parameters(const std::string& spec, const std::vector<std::string>& names) try {
  Spec parsed = parse_spec(spec);
  std::erase_if(parsed.arguments, [&](const auto& argument) {
    return std::find(names.begin(), names.end(), argument.first) != names.end();
  });
  for (auto& [key, value] : parsed.arguments)
    if (key.empty()) value = without_parameters(value, names);
  return to_string(parsed);
} catch (const Misuse&) {
  return spec;  // a name of another program, which is drawn as it is
}

}  // namespace attnbench
