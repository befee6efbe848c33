#include "harness/runner/cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>
#include <unordered_map>

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
  const Measurements* measurements = nullptr;
};

namespace {

// The columns by which conditions select a cell, spelled as in the store.
nlohmann::json columns_of(const CellRow& row) {
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
    if (values.size() != length)
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
    throw std::logic_error(
        fmt::format("none of the {} cells that the recipe selects from agrees with {}", rows_.size(), lists.dump()));
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
        throw std::logic_error(fmt::format("'{}' is not a size or parameter of {} on {}", column,
                                           found.at("method").get<std::string>(),
                                           found.at("input").get<std::string>()));
      const std::string words = value->is_string() ? value->get<std::string>() : value->dump();
      const bool spec = column == "method" || column == "input" || column == "experiment";
      part.name += (part.name.empty() ? "" : ", ") + (spec ? words : fmt::format("{} = {}", column, words));
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

bool Cells::has(const std::string& column) const {
  return std::any_of(rows_.begin(), rows_.end(),
                     [&](size_t row) { return table_->rows[row].columns.contains(column); });
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

std::vector<double> times(const Cells& one, const Cells& other, const std::string& metric) {
  const auto above = one.turns(metric), below = other.turns(metric);
  std::vector<double> ratios;
  for (size_t b = 0; b < std::min(above.size(), below.size()); ++b) ratios.push_back(above[b] / below[b]);
  return ratios;
}

CellTable::CellTable() : table_(std::make_shared<Cells::Table>()) {}

Cells CellTable::add(const std::vector<RecipeCell>& cells) {
  std::vector<size_t> rows;
  for (const RecipeCell& cell : cells) {
    const bool timing = cell.asked.timing();
    const CellRow asked = row_of(cell.asked, timing);
    const auto [place, fresh] = table_->by_asked_key.try_emplace(asked.key, table_->rows.size());
    if (fresh) table_->rows.push_back({cell, columns_of(asked), row_of(cell.run, timing).key});
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

void CellTable::read(const Measurements& measurements) { table_->measurements = &measurements; }

Cells cells_of(const RunRequest& request, const Measurements& measurements) {
  CellTable table;
  std::vector<RecipeCell> cells;
  for (const Cell& cell : expand(request)) cells.push_back({cell, cell, request.replicates});
  table.read(measurements);
  return table.add(cells);
}

}  // namespace attnbench
