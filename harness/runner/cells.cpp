#include "harness/runner/cells.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <stdexcept>
#include <unordered_map>

#include "harness/errors/error.hpp"
#include "harness/experiment/cell_row.hpp"
#include "harness/store/store.hpp"

namespace attnbench {

class Cells::Table {
 public:
  struct Row {
    RecipeCell cell;
    nlohmann::json columns;  // of the cell as requested
    std::string key;         // of the cell that runs
  };
  std::vector<Row> rows;
  std::unordered_map<std::string, size_t> by_asked_key;
  std::map<std::string, std::string> input_names;
  const Measurements* measurements = nullptr;
};

namespace {

// The columns by which conditions select a cell, spelled as in the store.
nlohmann::json columns_of(const CellRow& row, const Params& input, const std::map<std::string, std::string>& names) {
  auto columns = nlohmann::json::parse(row.parameters);
  columns.update({{"experiment", row.experiment},
                  {"method", row.method},
                  {"input", row.input},
                  {"nq", row.shape.nq},
                  {"n", row.shape.nk},
                  {"d", row.shape.d},
                  {"dv", row.shape.dv},
                  {"causal", row.shape.mask.causal ? 1 : 0},
                  {"logit_scale", row.logit_scale}});
  InputPlace place = place_of(input);
  if (const auto name = names.find(input.spec()); name != names.end()) place.name = name->second;
  columns.update({{"input_name", place.name}, {"input_group", place.group.empty() ? place.name : place.group}});
  return columns;
}

// Lists of accepted values by column, with specs in their canonical spelling.
nlohmann::json canonical(const std::vector<Condition>& conditions) {
  nlohmann::json lists = nlohmann::json::object();
  for (const auto& [name, wanted] : conditions) {
    nlohmann::json list = nlohmann::json::array();
    for (const AnyOf::Value& value : wanted.values) std::visit([&](const auto& one) { list.push_back(one); }, value);
    for (const auto& [column, plural] :
         {std::pair{"experiment", "experiments"}, {"method", "methods"}, {"input", "inputs"}})
      if (name == column)
        for (auto& spec : list) spec = Params(plural, spec.get<std::string>()).spec();
    lists[name] = std::move(list);
  }
  return lists;
}

bool agrees(const std::string& name, const nlohmann::json& found, const nlohmann::json& wanted) {
  if (name == "experiment" && wanted.get_ref<const std::string&>().find(':') == std::string::npos)
    return parse_spec(found.get<std::string>()).name == wanted;
  return found == wanted;
}

bool agrees(const nlohmann::json& columns, const nlohmann::json& lists) {
  for (const auto& [name, list] : lists.items()) {
    const auto found = columns.find(name);
    if (found == columns.end()) return false;
    if (std::none_of(list.begin(), list.end(),
                     [&, &column = name](const auto& one) { return agrees(column, *found, one); }))
      return false;
  }
  return true;
}

std::string words_of(const nlohmann::json& value) {
  return value.is_string()         ? value.get<std::string>()
         : value.is_number_float() ? fmt::format("{:g}", value.get<double>())
                                   : value.dump();
}

// The nearest of the cells' columns.
std::string nearest_columns(const std::string& given, const std::vector<const nlohmann::json*>& cells) {
  std::set<std::string> known;
  for (const auto* columns : cells)
    for (const auto& [name, value] : columns->items()) known.insert(name);
  return nearest_names(given, std::vector<std::string>(known.begin(), known.end()));
}

// Which condition no cell meets by itself, with what the cells have instead.
std::string unmet(const nlohmann::json& lists, const std::vector<const nlohmann::json*>& cells) {
  constexpr size_t most_shown = 8;
  for (const auto& [name, list] : lists.items()) {
    std::set<std::string> values;
    bool met = false;
    for (const auto* columns : cells) {
      const auto found = columns->find(name);
      if (found == columns->end()) continue;
      values.insert(words_of(*found));
      met = met || agrees(*columns, {{name, list}});
    }
    if (values.empty()) return fmt::format("none has a column '{}'{}", name, nearest_columns(name, cells));
    if (met) continue;
    std::vector<std::string> shown(values.begin(), values.end());
    if (shown.size() > most_shown) {
      shown.resize(most_shown);
      shown.push_back("...");
    }
    return fmt::format("their {} is {}{}", name, fmt::join(shown, "; "),
                       name == "method" || name == "input" || name == "experiment"
                           ? ". Expected a whole spec, or the name of a run"
                           : "");
  }
  return "each condition is met by some, and all together by none";
}

// "method = local:window=8 or uniform, n = 64".
std::string words_of_conditions(const nlohmann::json& lists) {
  std::vector<std::string> all;
  for (const auto& [name, list] : lists.items()) {
    std::vector<std::string> values;
    for (const auto& value : list) values.push_back(words_of(value));
    all.push_back(fmt::format("{} = {}", name, fmt::join(values, " or ")));
  }
  return fmt::format("{}", fmt::join(all, ", "));
}

}  // namespace

Samples StoredMeasurements::scalars(const RecipeCell& cell, const std::string& key, const std::string& metric) const {
  Samples samples = store_.scalars(key, metric);
  // Another recipe may have measured more replicates, and a verdict must not depend on what else is in the file.
  samples.erase(samples.lower_bound(cell.replicates), samples.end());
  if (samples.size() < static_cast<size_t>(cell.replicates)) samples.clear();
  return samples;
}

std::map<Index, std::vector<double>> StoredMeasurements::arrays(const RecipeCell& cell, const std::string& key,
                                                                const std::string& metric, size_t length) const {
  auto arrays = store_.arrays(key, metric);
  arrays.erase(arrays.lower_bound(cell.replicates), arrays.end());
  if (arrays.size() < static_cast<size_t>(cell.replicates)) arrays.clear();
  for (const auto& [replicate, values] : arrays)
    if (length > 0 && values.size() != length)
      throw std::logic_error(fmt::format("{} of {} has {} elements; the recipe expects {}", metric,
                                         cell.run.method.spec(), values.size(), length));
  return arrays;
}

Cells Cells::where(const std::vector<Condition>& conditions) const {
  const nlohmann::json lists = canonical(conditions);
  std::vector<size_t> found;
  for (const size_t row : rows_)
    if (agrees(table_->rows[row].columns, lists)) found.push_back(row);
  if (found.empty())
    throw std::logic_error(fmt::format("none of the {} cells that the recipe selects from has {}: {}", rows_.size(),
                                       words_of_conditions(lists), unmet(lists, all_columns())));
  return {table_, std::move(found)};
}

Cells Cells::operator+(const Cells& other) const {
  if (!table_) return other;
  if (!other.table_) return *this;
  if (table_ != other.table_) throw std::logic_error("cells of two recipes cannot be joined");
  std::vector<size_t> both = rows_;
  for (const size_t row : other.rows_)
    if (std::find(rows_.begin(), rows_.end(), row) == rows_.end()) both.push_back(row);
  return {table_, std::move(both)};
}

std::vector<const nlohmann::json*> Cells::all_columns() const {
  std::vector<const nlohmann::json*> all;
  for (const size_t row : rows_) all.push_back(&table_->rows[row].columns);
  return all;
}

std::vector<Cells> Cells::one_by_one() const {
  std::vector<Cells> all;
  for (const size_t row : rows_) all.push_back({table_, {row}});
  return all;
}

std::vector<Cells::Part> Cells::by(const std::vector<std::string>& columns) const {
  std::vector<Part> parts;
  std::map<std::string, size_t> place_of;
  for (const size_t row : rows_) {
    const nlohmann::json& found = table_->rows[row].columns;
    Part part;
    std::string identity;
    for (const std::string& column : columns) {
      const auto value = found.find(column);
      if (value == found.end())
        throw std::logic_error(fmt::format("'{}' is not a column of {} on {}{}", column,
                                           found.at("method").get<std::string>(), found.at("input").get<std::string>(),
                                           nearest_columns(column, all_columns())));
      const std::string words = words_of(*value);
      static const std::set<std::string> plain{"method", "experiment", "input", "input_name", "input_group"};
      part.name +=
          (part.name.empty() ? "" : ", ") + (plain.contains(column) ? words : fmt::format("{} = {}", column, words));
      if (value->is_string())
        part.shared.push_back({column, words});
      else
        part.shared.push_back({column, value->get<double>()});
      if (columns.size() == 1 && value->is_number()) part.coordinate = value->get<double>();
      identity += words + "\n";
    }
    const auto [place, fresh] = place_of.try_emplace(identity, parts.size());
    if (fresh) {
      part.cells = {table_, {}};
      parts.push_back(std::move(part));
    }
    parts[place->second].cells.rows_.push_back(row);
  }
  return parts;
}

void Cells::require_any(const std::vector<std::string>& columns) const {
  if (columns.empty() || std::any_of(columns.begin(), columns.end(), [&](const auto& one) { return has(one); })) return;
  throw std::logic_error(fmt::format("'{}' is a column of none of the cells{}", fmt::join(columns, "', '"),
                                     nearest_columns(columns.front(), all_columns())));
}

bool Cells::has(const std::string& column) const {
  return std::any_of(rows_.begin(), rows_.end(),
                     [&](size_t row) { return table_->rows[row].columns.contains(column); });
}

std::optional<double> Cells::number(const std::string& column) const {
  std::optional<double> all;
  for (const size_t row : rows_) {
    const auto& columns = table_->rows[row].columns;
    const auto found = columns.find(column);
    if (found == columns.end() || !found->is_number() || (all && *all != found->get<double>())) return std::nullopt;
    all = found->get<double>();
  }
  return all;
}

std::vector<std::string> Cells::keys() const {
  std::vector<std::string> keys;
  for (const size_t row : rows_) keys.push_back(table_->rows[row].key);
  return keys;
}

std::vector<RecipeCell> Cells::all() const {
  std::vector<RecipeCell> cells;
  for (const size_t row : rows_) cells.push_back(table_->rows[row].cell);
  return cells;
}

size_t Cells::only() const {
  if (rows_.size() != 1) {
    std::string names;
    for (size_t i = 0; i < std::min<size_t>(rows_.size(), 4); ++i) {
      const Cell& cell = table_->rows[rows_[i]].cell.asked;
      names += fmt::format("\n  {} {} {} n={} d={}", cell.experiment.spec(), cell.method.spec(), cell.input.spec(),
                           cell.problem.shape.nk, cell.problem.shape.d);
    }
    throw std::logic_error(
        fmt::format("a measurement belongs to one cell, but the selection has {}:{}", rows_.size(), names));
  }
  if (!table_->measurements) throw std::logic_error("a recipe read a measurement before its cells had run");
  return rows_.front();
}

Samples Cells::scalar(const std::string& metric) const {
  const Table::Row& row = table_->rows[only()];
  return table_->measurements->scalars(row.cell, row.key, metric);
}

std::vector<double> Cells::turns(const std::string& metric) const {
  const Table::Row& row = table_->rows[only()];
  const auto blocks = static_cast<size_t>(row.cell.run.experiment.integer("blocks"));
  std::vector<double> all;
  for (const auto& [replicate, values] : table_->measurements->arrays(row.cell, row.key, metric, blocks))
    all.insert(all.end(), values.begin(), values.end());
  return all;
}

std::vector<std::vector<double>> Cells::arrays(const std::string& metric, size_t length) const {
  const Table::Row& row = table_->rows[only()];
  std::vector<std::vector<double>> all;
  for (auto& [replicate, values] : table_->measurements->arrays(row.cell, row.key, metric, length))
    all.push_back(std::move(values));
  return all;
}

Samples Cells::element(const std::string& metric, size_t length, size_t place) const {
  Samples samples;
  for (const auto& values : arrays(metric, length)) samples[static_cast<Index>(samples.size())] = values.at(place);
  return samples;
}

Samples Cells::element(const std::string& metric, long place) const {
  Samples samples;
  for (const auto& values : arrays(metric, 0)) {
    const long index = place < 0 ? std::ssize(values) + place : place;
    if (index < 0 || index >= std::ssize(values))
      throw std::logic_error(fmt::format("{} has {} elements, and none at {}", metric, values.size(), place));
    samples[std::ssize(samples)] = values[static_cast<size_t>(index)];
  }
  return samples;
}

CellTable::CellTable() : table_(std::make_shared<Cells::Table>()) {}

Cells CellTable::add(const std::vector<RecipeCell>& cells) {
  std::vector<size_t> rows;
  for (const RecipeCell& cell : cells) {
    const bool timing = cell.asked.timing();
    const CellRow asked = row_of(cell.asked, timing);
    const auto [place, fresh] = table_->by_asked_key.try_emplace(asked.key, table_->rows.size());
    if (fresh)
      table_->rows.push_back(
          {cell, columns_of(asked, cell.asked.input, table_->input_names), row_of(cell.run, timing).key});
    Index& replicates = table_->rows[place->second].cell.replicates;
    replicates = std::max(replicates, cell.replicates);
    rows.push_back(place->second);
  }
  return {table_, std::move(rows)};
}

Cells CellTable::all() const {
  std::vector<size_t> rows(table_->rows.size());
  std::iota(rows.begin(), rows.end(), size_t{0});
  return {table_, std::move(rows)};
}

void CellTable::name_inputs(std::map<std::string, std::string> names) { table_->input_names = std::move(names); }

void CellTable::read(const Measurements& measurements) { table_->measurements = &measurements; }

Cells cells_of(const RunRequest& request, const Measurements& measurements) {
  CellTable table;
  std::vector<RecipeCell> cells;
  for (const Cell& cell : expand(request)) cells.push_back({cell, cell, request.replicates});
  table.read(measurements);
  return table.add(cells);
}

}  // namespace attnbench
