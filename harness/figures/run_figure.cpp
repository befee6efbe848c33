#include "harness/figures/run_figure.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "harness/core/spec.hpp"
#include "harness/errors/error.hpp"
#include "harness/figures/described_panel.hpp"
#include "harness/figures/looks.hpp"

namespace attnbench {

namespace {

using nlohmann::json;
using Names = std::vector<std::string>;
using CellPlaces = std::vector<size_t>;  // in MeasuredResults::cells()

constexpr size_t most_curves = 8;  // a panel has so many colours
constexpr size_t most_panels = 12;

// Of a spec. Other programs may have written what does not parse: it has none.
std::vector<std::pair<std::string, std::string>> arguments_of(const std::string& spec) try {
  return parse_spec(spec).arguments;
} catch (const Misuse&) {
  return {};
}

std::string name_of(const std::string& spec) { return spec.substr(0, spec.find(':')); }

// Replicates of several seeds are one sample, and placed_cells tells machines apart.
bool separates(const std::string& column) {
  return column != "experiment" && column != "method" && column != "input" && column != "seed" && column != "machine";
}

class RunFigure {
 public:
  RunFigure(const MeasuredResults& results, FigureQuestion asked) : results_(results), asked_(std::move(asked)) {}

  // By panel: first the inputs, whose swept numbers are not part of the name.
  json panels(const CellPlaces& cells, const json& like) const {
    std::map<std::string, CellPlaces> by_name, by_input;
    for (const size_t place : cells) by_name[name_of(text(place, "input"))].push_back(place);
    for (const auto& [name, of_name] : by_name) {
      const Names swept = swept_in(of_name);
      for (const size_t place : of_name) by_input[without_parameters(text(place, "input"), swept)].push_back(place);
    }
    std::vector<Part> parts;
    for (const auto& [input, of_input] : by_input) parts.push_back(part(printed_spec("inputs", input), of_input));
    for (bool divided = true; divided;) {
      divided = false;
      for (size_t i = 0; i < parts.size() && !divided; ++i) {
        const auto smaller = facets(parts[i]);
        if (smaller.size() < 2 || parts.size() + smaller.size() - 1 > most_panels) continue;
        parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i));
        parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(i), smaller.begin(), smaller.end());
        divided = true;
      }
    }
    json all = json::array();
    for (const Part& one : parts) all.push_back(described(one, like));
    return all;
  }

 private:
  struct Part {
    std::string title;
    CellPlaces cells;
    Names x;               // the axis, then parameters that move with it
    Names columns;         // that tell curves apart, beside the method
    Names separated = {};  // columns that the title has
    std::string x_name() const { return x.front(); }
  };

  const StoredCell& cell(size_t place) const { return results_.cells()[place]; }
  const std::string& text(size_t place, const char* column) const { return cell(place).column(column); }
  std::string value(size_t place, const std::string& name) const { return cell(place).value(name).value_or(""); }
  std::optional<double> number(size_t place, const std::string& name) const {
    const auto found = cell(place).value(name);
    return found ? number_in(*found) : std::nullopt;
  }

  // Of the cells that have that parameter; empty if one has a word.
  std::map<double, size_t> numbers(const CellPlaces& cells, const std::string& name) const {
    std::map<double, size_t> count;
    for (const size_t place : cells) {
      if (!cell(place).value(name)) continue;
      const auto found = number(place, name);
      if (!found) return {};
      ++count[*found];
    }
    return count;
  }

  // The parameters that inputs of one name give with several numbers.
  Names swept_in(const CellPlaces& of_name) const {
    std::set<std::string> given;
    for (const size_t place : of_name)
      for (const auto& argument : arguments_of(text(place, "input"))) given.insert(argument.first);
    Names swept;
    for (const auto& parameter : given)
      if (numbers(of_name, parameter).size() > 1) swept.push_back(parameter);
    return swept;
  }

  // The columns and parameters that not all cells have in common: sizes first, then parameters by name.
  Names varying(const CellPlaces& cells) const {
    Names names{"n", "d", "heads", "logit_scale"};
    for (const StoredColumn& column : cell_columns)
      if (separates(std::string(column.name)) && std::find(names.begin(), names.end(), column.name) == names.end())
        names.emplace_back(column.name);
    std::set<std::string> parameters;
    for (const size_t place : cells)
      for (const auto& item : cell(place).parameters.items()) parameters.insert(item.key());
    names.insert(names.end(), parameters.begin(), parameters.end());
    std::erase_if(names, [&](const std::string& name) {
      return std::all_of(cells.begin(), cells.end(),
                         [&](size_t place) { return cell(place).value(name) == cell(cells.front()).value(name); });
    });
    return names;
  }

  // The column with most numbers; of equal ones that of most cells, then the first of varying().
  std::string widest(const CellPlaces& cells) const {
    std::string widest = "n";
    std::pair<size_t, size_t> most{1, 0};
    for (const auto& name : varying(cells)) {
      const auto counts = numbers(cells, name);
      size_t covered = 0;
      for (const auto& [number, count] : counts) covered += count;
      if (const std::pair size{counts.size(), covered}; counts.size() > 1 && size > most)
        std::tie(widest, most) = std::tuple(name, size);
    }
    return widest;
  }

  // Parameters of methods that have one number at each x, such as a budget for equal FLOPs.
  Names moving_with(const CellPlaces& cells, const std::string& x) const {
    std::set<std::string> given;
    for (const size_t place : cells)
      for (const auto& argument : arguments_of(text(place, "method")))
        if (!argument.first.empty() && argument.first != x) given.insert(argument.first);
    Names moving;
    for (const auto& name : given) {
      std::map<std::pair<std::string, std::string>, std::set<std::string>> at;  // values, by method and x
      std::map<std::string, std::set<std::string>> of_method, x_of_method;
      for (const size_t place : cells) {
        if (!number(place, name)) continue;
        const std::string method = without_parameters(text(place, "method"), {x, name});
        at[{method, value(place, x)}].insert(value(place, name));
        of_method[method].insert(value(place, name));
        x_of_method[method].insert(value(place, x));
      }
      const bool one_each = std::all_of(at.begin(), at.end(), [](const auto& one) { return one.second.size() == 1; });
      const bool moves = std::any_of(of_method.begin(), of_method.end(), [&](const auto& one) {
        return one.second.size() > 1 && x_of_method[one.first].size() > 1;
      });
      if (one_each && moves) moving.push_back(name);
    }
    return moving;
  }

  // Columns are added until cells at one place of one curve differ in nothing that counts.
  Names telling_apart(const CellPlaces& cells, const Names& x, const Names& separated) const {
    Names columns;
    for (const auto& candidate : varying(cells)) {
      const auto is_in = [&](const Names& names) {
        return std::find(names.begin(), names.end(), candidate) != names.end();
      };
      if (is_in(x) || is_in(separated)) continue;
      std::map<std::string, std::set<std::string>> values;
      for (const size_t place : cells) {
        std::string key = curve_of(place, x, columns);
        if (number(place, x.front())) key += "\n" + value(place, x.front());
        values[key].insert(value(place, candidate));
      }
      if (std::any_of(values.begin(), values.end(), [](const auto& one) { return one.second.size() > 1; }))
        columns.push_back(candidate);
    }
    return columns;
  }

  std::string curve_of(size_t place, const Names& x, const Names& columns) const {
    std::string key = without_parameters(text(place, "method"), x);
    for (const auto& column : columns) key += "\n" + value(place, column);
    return key;
  }

  Part part(const std::string& title, const CellPlaces& cells, const Names& separated = {}) const {
    const std::string x = asked_.x.empty() ? widest(cells) : asked_.x;
    Part made{.title = title, .cells = cells, .x = {x}, .columns = asked_.series, .separated = separated};
    if (!asked_.series.empty()) return made;
    for (const auto& name : moving_with(cells, x)) made.x.push_back(name);
    made.columns = telling_apart(cells, made.x, separated);
    return made;
  }

  size_t curves(const Part& one) const {
    std::set<std::string> names;
    for (const size_t place : one.cells) names.insert(curve_of(place, one.x, one.columns));
    return names.size();
  }

  // A panel with too many curves, by the column with fewest values: one panel for each.
  std::vector<Part> facets(const Part& whole) const {
    if (!asked_.series.empty() || whole.columns.empty() || curves(whole) <= most_curves) return {};
    std::map<std::string, CellPlaces> fewest;
    std::string by;
    for (const auto& column : whole.columns) {
      std::map<std::string, CellPlaces> values;
      for (const size_t place : whole.cells) values[value(place, column)].push_back(place);
      if (values.size() > 1 && (fewest.empty() || values.size() < fewest.size()))
        std::tie(fewest, by) = std::tuple(values, column);
    }
    std::vector<Part> parts;
    Names separated = whole.separated;
    separated.push_back(by);
    for (const auto& [at, cells] : fewest)
      parts.push_back(part(fmt::format("{}, {} = {}", whole.title, by, at.empty() ? "none" : at), cells, separated));
    std::stable_sort(parts.begin(), parts.end(), [&](const Part& a, const Part& b) {
      return number(a.cells.front(), by).value_or(-INFINITY) < number(b.cells.front(), by).value_or(-INFINITY);
    });
    return parts;
  }

  // Whether a logarithmic axis shows them all, and more of them than a linear one.
  static bool spans(const std::set<double>& numbers, double factor) {
    return numbers.size() > 1 && *numbers.begin() > 0 && std::isfinite(*numbers.rbegin()) &&
           *numbers.rbegin() >= factor * *numbers.begin();
  }

  json described(const Part& one, const json& like) const {
    std::set<double> x, y;
    std::set<std::string> levels;
    Names keys;
    for (const size_t place : one.cells) {
      keys.push_back(cell(place).key);
      if (const auto found = number(place, one.x_name()))
        x.insert(*found);
      else
        levels.insert(text(place, "method"));
      for (const auto& [replicate, values] : results_.values(place, asked_.metric))
        y.insert(values.values.begin(), values.values.end());
    }
    Names series = asked_.series.empty() ? Names{"method"} : Names();
    series.insert(series.end(), one.columns.begin(), one.columns.end());
    const auto logarithmic = [&](char axis, const std::set<double>& numbers) {
      return asked_.log.empty() ? spans(numbers, 8) : asked_.log.find(axis) != std::string::npos;
    };
    json panel = like;
    panel.update({{"title", one.title},
                  {"cells", keys},
                  {"x", one.x},
                  {"x_label", one.x_name() == "n" ? "sequence length n" : one.x_name()},
                  {"x_scale", logarithmic('x', x) ? "log2" : "linear"},
                  {"y_scale", logarithmic('y', y) ? "log10" : "linear"},
                  {"references", x.empty() ? Names() : Names(levels.begin(), levels.end())},
                  {"series", series}});
    return panel;
  }

  const MeasuredResults& results_;
  FigureQuestion asked_;
};

}  // namespace

json panels_of_cells(const MeasuredResults& results, const std::vector<size_t>& places, const FigureQuestion& asked,
                     const json& like) {
  return RunFigure(results, asked).panels(places, like);
}

json figure_of_cells(const MeasuredResults& results, const json& stored) {
  json figure = stored;
  const json like = stored.at("panels").at(0);
  const auto experiment = like.at("where").at("experiment").get<std::string>();
  CellPlaces cells;
  for (size_t place = 0; place < results.cells().size(); ++place)
    if (name_of(results.cells()[place].column("experiment")) == experiment) cells.push_back(place);
  if (!cells.empty()) figure["panels"] = panels_of_cells(results, cells, {.metric = like.at("y")}, like);
  return figure;
}

}  // namespace attnbench
