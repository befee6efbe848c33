#include "harness/figures/looks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "harness/core/parameters.hpp"
#include "harness/core/registry.hpp"

namespace attnbench {

namespace {

std::string with_spaces(std::string text) {
  std::replace(text.begin(), text.end(), '-', ' ');
  return text;
}

std::string printed_name(const std::string& plural, const std::string& name) {
  if (!catalogue(plural).has(name)) return name;
  const Description& text = catalogue(plural).description(name);
  if (!text.printed.empty()) return text.printed;
  std::string words = with_spaces(text.name);
  const size_t capitals = plural != "methods" ? 0 : words.size() <= 3 ? words.size() : 1;  // KDA, and Softpick
  for (size_t i = 0; i < capitals; ++i)
    words[i] = static_cast<char>(std::toupper(static_cast<unsigned char>(words[i])));
  return words;
}

// "m = 64", "no cache", "trig.": one argument of a spec.
std::string printed_argument(const Params& params, const Parameter& parameter, const std::string& value) {
  switch (parameter.kind) {
    case Parameter::Kind::entry:
      return printed_spec(parameter.catalogue, value);
    case Parameter::Kind::flag:
      return (params.flag(parameter.name) ? "" : "no ") + with_spaces(parameter.name);
    case Parameter::Kind::integer:
    case Parameter::Kind::real:
      return fmt::format("{} = {}", parameter.name, value);
    default:
      return fmt::format("{} {}", with_spaces(parameter.name), value);
  }
}

std::string printed_arguments(const Params& params, const Spec& spec) {
  std::string words, parts;
  for (const auto& argument : spec.arguments) {
    const std::string &key = argument.first, &value = argument.second;
    const auto& declared = params.declared();
    const auto found = std::find_if(declared.begin(), declared.end(), [&](const Parameter& parameter) {
      return key.empty() ? &parameter == &declared.front() : parameter.name == key;
    });
    if (found == declared.end()) continue;
    if (found->kind == Parameter::Kind::specs)
      parts += (parts.empty() ? "" : "; ") + printed_spec(found->catalogue, value);
    else
      words += ", " + printed_argument(params, *found, value);
  }
  return (parts.empty() ? "" : " (" + parts + ")") + words;
}

// Nullopt for a method that is not registered here, or has other parameters.
std::optional<Params> method_of(const std::string& spec) try { return Params("methods", spec); } catch (const Misuse&) {
  return std::nullopt;
}

std::string printed_part(const StoredCell& cell, const std::string& column, const std::vector<std::string>& axes) {
  const auto value = cell.value(column);
  if (!value) return "";
  if (column == "method") return printed_spec("methods", without_parameters(*value, axes));
  if (column == "input") return printed_spec("inputs", without_parameters(*value, axes));
  if (column == "experiment") return without_parameters(*value, axes);
  if (const auto params = method_of(cell.column("method")))
    for (const Parameter& parameter : params->declared())
      if (parameter.name == column && parameter.kind == Parameter::Kind::entry)
        return printed_spec(parameter.catalogue, *value);
  return fmt::format("{} = {}", column, *value);
}

// The place of an entry among those of its family: first the one that gives the family its name (trig: trigonometric),
// then the others in the order of their names.
size_t place_in_family(const std::string& plural, const std::string& entry) {
  const Catalogue& all = catalogue(plural);
  const std::string& family = all.description(entry).family;
  if (family.starts_with(entry)) return 0;
  size_t place = 0;
  for (const auto& name : all.names()) {
    const bool before = family.starts_with(name) || name < entry;
    place += before && all.description(name).family == family;
  }
  return place;
}

// 0 for the default, and 1, 2, ... for the others in the order of their names.
size_t place_beside(const Parameter& parameter, const std::string& value) {
  if (value == parameter.default_value) return 0;
  size_t place = 1;
  for (const auto& name : catalogue(parameter.catalogue).names()) {
    if (name == value) break;
    place += name != parameter.default_value;
  }
  return place;
}

void add_family(SeriesLook& look, const Params& method) {
  look.family = catalogue("methods").description(method.name()).family;
  look.shade = look.marker = place_in_family("methods", method.name());
  for (const Parameter& parameter : method.declared()) {
    if (parameter.kind != Parameter::Kind::entry) continue;
    const std::string& value = method.text(parameter.name);
    if (parameter.name == "features") {
      look.marker = place_in_family(parameter.catalogue, value);
      const std::string& family = catalogue(parameter.catalogue).description(value).family;
      if (family.empty()) continue;
      look.family = family;
      look.shade = look.marker;
    } else if (parameter.catalogue == "projections") {
      look.line = place_beside(parameter, value);
    }
  }
}

SeriesLook look_of(const StoredCell& cell, const DescribedPanel& panel) {
  SeriesLook look;
  std::vector<std::string> axes = panel.x;
  axes.insert(axes.end(), panel.y_axis.begin(), panel.y_axis.end());
  for (const auto& column : panel.series)
    if (const std::string part = printed_part(cell, column, axes); !part.empty())
      look.name += (look.name.empty() ? "" : ", ") + part;
  if (const auto params = method_of(cell.column("method"))) add_family(look, *params);
  return look;
}

}  // namespace

std::string printed_spec(const std::string& plural, const std::string& text) try {
  const Spec spec = parse_spec(text);
  if (!catalogue(plural).has(spec.name)) return text;
  return printed_name(plural, spec.name) + printed_arguments(Params(plural, spec), spec);
} catch (const Misuse&) {
  return text;  // a spec of another version of this program
}

SeriesLook look_of_method(const std::string& spec) {
  SeriesLook look{.name = printed_spec("methods", spec)};
  if (const auto params = method_of(spec)) add_family(look, *params);
  return look;
}

CellsOfSeries cells_of_series(const std::vector<PlacedCell>& placed) {
  CellsOfSeries cells;
  for (const PlacedCell& place : placed) cells.emplace(place.series, place.cell);
  return cells;
}

SeriesLook series_look(const MeasuredResults& results, const DescribedPanel& panel, const CellsOfSeries& cells,
                       const std::string& series) {
  auto of = cells.upper_bound(series);
  while (of != cells.begin() && !series.starts_with(std::prev(of)->first)) --of;
  if (of == cells.begin()) return {.name = series};
  const auto& [of_cell, cell] = *std::prev(of);
  SeriesLook look = look_of(results.cells()[cell], panel);
  look.name += series.substr(of_cell.size());
  return look;
}

std::map<std::string, SeriesLook> series_looks(const MeasuredResults& results, const DescribedPanel& panel,
                                               const std::vector<DrawnPoint>& points) {
  const CellsOfSeries cells = cells_of_series(placed_cells(results, panel));
  std::map<std::string, SeriesLook> looks;
  std::map<std::string, size_t> count;  // of series that have this printed name
  for (const DrawnPoint& point : points) {
    if (looks.contains(point.series)) continue;
    SeriesLook look = series_look(results, panel, cells, point.series);
    ++count[look.name];
    looks.emplace(point.series, std::move(look));
  }
  for (auto& [series, look] : looks)
    if (count[look.name] > 1) look.name = series;
  return looks;
}

}  // namespace attnbench
