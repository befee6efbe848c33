#include "harness/runner/results_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "harness/core/spec.hpp"
#include "harness/experiment/experiment.hpp"
#include "harness/statistics/intervals.hpp"

namespace attnbench {

namespace {

constexpr double error_rate = 0.05;

// The newest version of each cell.
std::vector<const CellSamples*> current(const std::vector<CellSamples>& cells) {
  std::map<std::pair<std::vector<std::string>, std::string>, const CellSamples*> newest;
  for (const CellSamples& one : cells) {
    const CellSamples*& place = newest[{one.cell.values, one.cell.parameters.dump()}];
    if (!place || place->finished < one.finished) place = &one;
  }
  std::vector<const CellSamples*> all;
  for (const CellSamples& one : cells)
    if (newest[{one.cell.values, one.cell.parameters.dump()}] == &one) all.push_back(&one);
  return all;
}

// The spec without that parameter.
std::string without(const std::string& spec, const std::string& parameter) {
  Spec parsed = parse_spec(spec);
  std::erase_if(parsed.arguments, [&](const auto& argument) { return argument.first == parameter; });
  return to_string(parsed);
}

// The columns and parameters that differ between the cells. Only these may name rows and columns of the table.
class Differences {
 public:
  explicit Differences(const std::vector<const CellSamples*>& cells) {
    for (const CellSamples* one : cells) {
      for (const StoredColumn& column : cell_columns) add(*one, std::string(column.name));
      for (const auto& [name, value] : one->cell.parameters.items()) add(*one, name);
      same_rows_ &= one->cell.column("nq") == one->cell.column("n");
      same_columns_ &= one->cell.column("dv") == one->cell.column("d");
    }
  }

  bool differs(const std::string& name) const {
    const auto found = values_.find(name);
    return found != values_.end() && found->second.size() > 1;
  }

  // Sizes first, because every cell has them.
  std::vector<std::string> possible_axes() const {
    std::vector<std::string> axes;
    for (const char* size : {"n", "d", "dv", "heads", "logit_scale"})
      if (differs(size) && !follows_another(size)) axes.emplace_back(size);
    for (const auto& [name, values] : values_)
      if (!is_column(name) && values.size() > 1 &&
          std::all_of(values.begin(), values.end(), [](const auto& value) { return number_in(value).has_value(); }))
        axes.push_back(name);
    return axes;
  }

  // The name of a cell's row: its method, and all else that differs beside the axis.
  std::vector<std::string> row_of(const StoredCell& cell, const std::string& axis) const {
    std::vector<std::string> row{without(cell.column("method"), axis)};
    for (const char* spec : {"input", "experiment"})
      if (differs(spec)) row.push_back(without(cell.column(spec), axis));
    for (const StoredColumn& column : cell_columns) {
      const std::string name(column.name);
      if (name == axis || name == "method" || name == "input" || name == "experiment" || !differs(name) ||
          follows_another(name))
        continue;
      row.push_back(fmt::format("{}={}", name, cell.column(name)));
    }
    if (differs("round") || (values_.contains("round") && count_.at("round") < cells_))
      row.push_back("round=" + cell.value("round").value_or("none"));
    return row;
  }

 private:
  static bool is_column(const std::string& name) {
    return std::any_of(std::begin(cell_columns), std::end(cell_columns),
                       [&](const StoredColumn& column) { return column.name == name; });
  }
  bool follows_another(const std::string& name) const {
    return (name == "nq" && same_rows_) || (name == "dv" && same_columns_) || (name == "mask_offset" && same_rows_);
  }
  void add(const CellSamples& one, const std::string& name) {
    if (name == "experiment") ++cells_;
    ++count_[name];
    values_[name].insert(*one.cell.value(name));
  }

  std::map<std::string, std::set<std::string>> values_ = {};
  std::map<std::string, size_t> count_ = {};
  size_t cells_ = 0;
  bool same_rows_ = true, same_columns_ = true;
};

// The axis with most values in one row; empty if nothing may be an axis.
std::string axis_of(const std::vector<const CellSamples*>& cells, const Differences& differences) {
  std::string best;
  size_t most = 1;
  for (const std::string& axis : differences.possible_axes()) {
    std::map<std::vector<std::string>, std::set<std::string>> rows;
    for (const CellSamples* one : cells)
      if (const auto value = one->cell.value(axis)) rows[differences.row_of(one->cell, axis)].insert(*value);
    for (const auto& [row, values] : rows)
      if (values.size() > most) {
        most = values.size();
        best = axis;
      }
  }
  return best;
}

// A factor for all numbers of the table, and the name of the unit that it makes.
struct Scale {
  double factor = 1;
  std::string unit = {};
};

Scale scale_of(const std::vector<double>& magnitudes, const std::string& unit) {
  static const std::map<std::string, std::vector<std::pair<double, const char*>>> units{
      {"s", {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}}}, {"B", {{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}, {1, "B"}}}};
  const auto known = units.find(unit);
  if (known == units.end() || magnitudes.empty()) return {1, unit == "1" ? "" : unit};
  const double typical = median(magnitudes);
  for (const auto& [size, name] : known->second)
    if (typical >= size) return {1 / size, name};
  return {1 / known->second.back().first, known->second.back().second};
}

// With so many significant digits, in a form that aligns: 0.0688, 12.3, 1234, 1.2e-05.
std::string digits_of(double number, int significant) {
  if (number == 0 || !std::isfinite(number)) return fmt::format("{}", number);
  const int exponent = static_cast<int>(std::floor(std::log10(std::abs(number))));
  if (exponent < -4 || exponent > 5) return fmt::format("{:.{}e}", number, significant - 1);
  return fmt::format("{:.{}f}", number, std::max(0, significant - 1 - exponent));
}

struct Shown {
  double value = 0;
  std::optional<Interval> interval = {};
};

Shown shown_of(const CellSamples& one) {
  Interval interval{-HUGE_VAL, HUGE_VAL};
  Shown shown;
  if (one.cell.timing()) {
    shown.value = median(one.samples);
    if (one.samples.size() >= least_for_median(error_rate)) interval = median_interval(one.samples, error_rate);
  } else {
    const Moments sample = moments(one.samples);
    shown.value = std::isfinite(sample.mean) ? sample.mean : HUGE_VAL;
    if (one.samples.size() > 1 && std::isfinite(sample.mean)) interval = mean_interval(sample, error_rate);
  }
  if (std::isfinite(interval.high - interval.low)) shown.interval = interval;
  return shown;
}

// " ±0.12", or " +0.31/-0.04" where the halves differ by more than a third.
std::string text_of(const Shown& shown, double factor) {
  if (!shown.interval) return "";
  const double above = shown.interval->high - shown.value, below = shown.value - shown.interval->low;
  const double larger = std::max(above, below), smaller = std::min(above, below);
  if (larger == 0) return "";
  if (larger <= 4 * smaller / 3) return " ±" + digits_of(factor * larger, 2);
  return fmt::format(" +{}/-{}", digits_of(factor * above, 2), digits_of(factor * below, 2));
}

bool partial(const CellSamples& one) { return !one.samples.empty() && (one.done < one.replicates || one.lacking > 0); }

std::string text_of(const CellSamples& one, const Scale& scale) {
  if (one.samples.empty()) return one.done == one.replicates ? "not estimated" : one.ending;
  const Shown shown = shown_of(one);
  return digits_of(scale.factor * shown.value, 3) + text_of(shown, scale.factor) + (partial(one) ? "*" : "");
}

size_t characters(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}
std::string padded(const std::string& text, size_t width) {
  return text + std::string(width - std::min(width, characters(text)), ' ');
}

std::string range_of(size_t least, size_t most, const char* one, const char* many) {
  return least == most ? fmt::format("{} {}", most, most == 1 ? one : many)
                       : fmt::format("{} to {} {}", least, most, many);
}

// "gaussian, n = 256, d = 64, causal; mean and 95 % interval of 3 replicates"
std::string circumstances(const std::vector<const CellSamples*>& cells, const Differences& differences) {
  const StoredCell& first = cells.front()->cell;
  std::string text;
  const auto say = [&](const std::string& what) { text += (text.empty() ? "" : ", ") + what; };
  if (!differences.differs("input")) say(first.column("input"));
  for (const char* size : {"n", "d"})
    if (!differences.differs(size)) say(fmt::format("{} = {}", size, first.column(size)));
  if (!differences.differs("causal") && first.column("causal") == "1") say("causal");
  size_t least = SIZE_MAX, most = 0;
  for (const CellSamples* one : cells)
    if (!one->samples.empty()) {
      least = std::min(least, one->samples.size());
      most = std::max(most, one->samples.size());
    }
  if (most == 0) return text;
  if (!text.empty()) text += "; ";
  if (first.timing())
    return text + "median and 95 % interval of " + range_of(least, most, "block of turns", "blocks of turns");
  if (most == 1) return text + "one replicate, so there is no interval (--replicates 8 gives one)";
  return text + "mean and 95 % interval of " + range_of(least, most, "replicate", "replicates");
}

struct Layout {
  std::vector<std::vector<std::string>> rows;   // the names of each row
  std::vector<std::string> heads;               // of each column of numbers
  std::vector<std::vector<std::string>> texts;  // by row and column
};

// Columns that fit: those at both ends, because an axis is read from its ends.
std::vector<size_t> fitting(const std::vector<size_t>& widths, size_t room) {
  std::vector<size_t> first, last;
  size_t used = 0;
  for (size_t i = 0, j = widths.size(); i < j;) {
    const bool front = first.size() <= last.size();
    const size_t width = 2 + widths[front ? i : j - 1];
    if (used + width > room && !first.empty()) break;
    used += width;
    if (front)
      first.push_back(i++);
    else
      last.push_back(--j);
  }
  first.insert(first.end(), last.rbegin(), last.rend());
  return first;
}

std::string print(const Layout& layout, const std::string& axis, const TableRoom& room) {
  std::vector<size_t> names, widths;
  for (const auto& row : layout.rows)
    for (size_t i = 0; i < row.size(); ++i) {
      if (names.size() <= i) names.push_back(0);
      names[i] = std::max(names[i], characters(row[i]));
    }
  for (size_t c = 0; c < layout.heads.size(); ++c) {
    widths.push_back(characters(layout.heads[c]));
    for (const auto& row : layout.texts) widths[c] = std::max(widths[c], characters(row[c]));
  }
  size_t margin = 0;
  for (const size_t width : names) margin += width + 2;
  margin -= 2;
  const auto columns = fitting(widths, room.width > margin ? room.width - margin : 0);
  const size_t lines = std::min(layout.rows.size(), room.rows);
  std::string text;
  const auto end_line = [&] {
    text.erase(text.find_last_not_of(' ') + 1);
    text += "\n";
  };
  if (!axis.empty()) {
    text += std::string(margin, ' ');
    for (const size_t c : columns) text += "  " + padded(layout.heads[c], widths[c]);
    end_line();
  }
  for (size_t r = 0; r < lines; ++r) {
    for (size_t i = 0; i < layout.rows[r].size(); ++i)
      text += (i > 0 ? "  " : "") + padded(layout.rows[r][i], names[i]);
    for (const size_t c : columns) text += "  " + padded(layout.texts[r][c], widths[c]);
    end_line();
  }
  if (columns.size() < layout.heads.size()) {
    std::vector<std::string> cut;
    for (size_t c = 0; c < layout.heads.size(); ++c)
      if (std::find(columns.begin(), columns.end(), c) == columns.end()) cut.push_back(layout.heads[c]);
    text += fmt::format("not shown for lack of room: {}; a wider terminal shows them, or --where {}=VALUE\n",
                        fmt::join(cut, ", "), axis);
  }
  if (lines < layout.rows.size())
    text += fmt::format(
        "{} more rows are not shown; --where method=NAME narrows the table, and attnbench export has "
        "every number\n",
        layout.rows.size() - lines);
  return text;
}

}  // namespace

std::string results_table(const ShownMetric& shown, const std::vector<CellSamples>& given, const TableRoom& room) {
  std::vector<const CellSamples*> cells = current(given);
  std::erase_if(cells, [](const CellSamples* one) { return one->replicates == 0; });
  if (cells.empty()) return "";
  const Differences differences(cells);
  const std::string axis = axis_of(cells, differences);
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> values;  // of the axis; empty: the cell has no such parameter
  std::vector<double> magnitudes;
  std::string unit;
  bool marked = false;
  for (const CellSamples* one : cells) {
    const auto row = differences.row_of(one->cell, axis);
    if (std::find(rows.begin(), rows.end(), row) == rows.end()) rows.push_back(row);
    const std::string value = axis.empty() ? "" : one->cell.value(axis).value_or("");
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
    if (one->samples.empty()) continue;
    unit = one->unit;
    marked |= partial(*one);
    if (const double size = std::abs(shown_of(*one).value); size > 0) magnitudes.push_back(size);
  }
  if (unit.empty() &&
      std::all_of(cells.begin(), cells.end(), [](const CellSamples* one) { return one->done == one->replicates; }))
    return "";
  std::sort(values.begin(), values.end(), [](const std::string& a, const std::string& b) {
    return number_in(a).value_or(-HUGE_VAL) < number_in(b).value_or(-HUGE_VAL);
  });
  const Scale scale = scale_of(magnitudes, unit);
  Layout layout{.rows = rows, .heads = {}, .texts = {}};
  for (const auto& value : values)
    layout.heads.push_back(value.empty() ? "no " + axis : fmt::format("{} = {}", axis, value));
  layout.texts.assign(rows.size(), std::vector<std::string>(values.size()));
  for (const CellSamples* one : cells) {
    const auto row = std::find(rows.begin(), rows.end(), differences.row_of(one->cell, axis));
    const std::string value = axis.empty() ? "" : one->cell.value(axis).value_or("");
    const auto column = std::find(values.begin(), values.end(), value);
    layout.texts[static_cast<size_t>(row - rows.begin())][static_cast<size_t>(column - values.begin())] =
        text_of(*one, scale);
  }
  const Better better = better_of(shown.metric, unit);
  std::string text = fmt::format("{}: {}{}{}{}\n", shown.experiment, shown.metric,
                                 scale.unit.empty() ? "" : fmt::format(" [{}]", scale.unit),
                                 shown.label.empty() ? "" : ", " + shown.label,
                                 better == Better::less   ? "; less is better"
                                 : better == Better::more ? "; more is better"
                                                          : "");
  text += circumstances(cells, differences) + "\n";
  text += print(layout, axis, room);
  if (marked) text += "* without the replicates that are not done or could not be estimated: the rest may be biased\n";
  return text;
}

}  // namespace attnbench
