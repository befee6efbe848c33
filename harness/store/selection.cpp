#include "harness/store/selection.hpp"

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <set>

#include "harness/core/registry.hpp"
#include "harness/store/database.hpp"
#include "harness/store/export.hpp"

namespace attnbench {

std::optional<double> number_in(const std::string& text) {
  if (text == "true") return 1;
  if (text == "false") return 0;
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || at != end) return std::nullopt;
  return number;
}

bool same_value(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const auto x = number_in(a), y = number_in(b);
  return x && y && *x == *y && std::abs(*x) < 0x1p53;
}

namespace {

// Seeds are text, and shorter ones are smaller numbers. Version and key break ties.
constexpr const char* select_cells = R"sql(
  SELECT experiment, method, input, nq, n, d, dv, causal, mask_offset, mask_keys, precision, heads, logit_scale, seed,
         threads, machine, id, parameters, key, source_version
  FROM cell
  ORDER BY experiment, method, input, nq, n, d, dv, causal, mask_offset, mask_keys, precision, heads, logit_scale,
           length(seed), seed, threads, parameters, machine, source_version, key)sql";

// Whether the spec has the name and the parameters of `wanted`, in any spelling.
bool describes(const std::string& plural, const std::string& wanted, const std::string& spec) {
  const Spec asked = parse_spec(wanted), there = parse_spec(spec);
  if (!catalogue(plural).has(there.name))
    return wanted == spec || (asked.arguments.empty() && asked.name == there.name);
  if (!catalogue(plural).has(asked.name) || catalogue(plural).canonical(asked.name) != there.name) return false;
  const Params whole(plural, asked), cell(plural, there);
  return std::all_of(asked.arguments.begin(), asked.arguments.end(), [&](const auto& argument) {
    const std::string& name = argument.first.empty() ? whole.declared().front().name : argument.first;
    return cell.has(name) && cell.text(name) == whole.text(name);
  });
}

bool meets(const StoredCell& cell, const CellCondition& condition) {
  const auto value = cell.value(condition.column);
  if (!value) return false;
  for (const char* spec : {"experiment", "method", "input"})
    if (condition.column == spec) return describes(condition.column + "s", condition.value, *value);
  return same_value(*value, condition.value);
}

[[noreturn]] void report_unmet(const std::vector<StoredCell>& cells, const std::string& file,
                               const CellCondition& condition) {
  std::set<std::string> names, values;
  for (const StoredCell& cell : cells) {
    for (const StoredColumn& column : cell_columns) names.emplace(column.name);
    for (const auto& [name, value] : cell.parameters.items()) names.insert(name);
    if (const auto value = cell.value(condition.column)) values.insert(*value);
  }
  const std::string given = fmt::format("--where {}={}", condition.column, condition.value);
  if (values.empty())
    throw Misuse(fmt::format("{}: no cell of '{}' has a column or a parameter '{}'{}", given, file, condition.column,
                             nearest_names(condition.column, std::vector<std::string>(names.begin(), names.end()))));
  constexpr std::ptrdiff_t most = 12;
  const std::vector<std::string> some(values.begin(),
                                      std::next(values.begin(), std::min<std::ptrdiff_t>(most, std::ssize(values))));
  throw Misuse(fmt::format("{}: no cell of '{}' that meets the other conditions has this value; there {} {}{}", given,
                           file, values.size() == 1 ? "is" : "are", fmt::join(some, ", "),
                           std::ssize(values) > most ? fmt::format(" and {} more", std::ssize(values) - most) : ""));
}

StoredCell cell_of(SQLite::Statement& row) {
  StoredCell cell;
  int at = 0;
  for (const StoredColumn& column : cell_columns) {
    const SQLite::Column value = row.getColumn(at++);
    cell.values.push_back(column.type == "real" ? fmt::format("{}", value.getDouble()) : value.getString());
  }
  cell.id = row.getColumn(at++).getInt64();
  cell.parameters = nlohmann::json::parse(row.getColumn(at++).getString(), nullptr, false);
  if (!cell.parameters.is_object()) cell.parameters = nlohmann::json::object();
  for (const StoredColumn& column : cell_columns) cell.parameters.erase(std::string(column.name));
  cell.key = row.getColumn(at++).getString();
  cell.source_version = row.getColumn(at).getString();
  return cell;
}

}  // namespace

const std::string& StoredCell::column(std::string_view name) const {
  const auto* found = std::find_if(std::begin(cell_columns), std::end(cell_columns),
                                   [&](const StoredColumn& column) { return column.name == name; });
  return values.at(static_cast<size_t>(found - std::begin(cell_columns)));
}

std::optional<std::string> StoredCell::value(const std::string& name) const {
  for (const StoredColumn& known : cell_columns)
    if (known.name == name) return column(name);
  const auto found = parameters.find(name);
  if (found == parameters.end()) return std::nullopt;
  return found->is_string() ? found->get<std::string>() : found->dump();
}

CellCondition parse_condition(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    throw Misuse(
        fmt::format("--where {}: expected NAME=VALUE, such as --where method=performer or --where m=64", text));
  return {text.substr(0, equals), text.substr(equals + 1)};
}

std::vector<StoredCell> selected_cells(SQLite::Database& database, const std::string& name,
                                       const std::vector<CellCondition>& where) {
  std::vector<StoredCell> cells;
  SQLite::Statement select(database, select_cells);
  while (select.executeStep()) cells.push_back(cell_of(select));
  std::set<std::string> done;
  for (const CellCondition& condition : where) {
    if (!done.insert(condition.column).second) continue;
    std::vector<StoredCell> left;
    for (const StoredCell& cell : cells)
      if (std::any_of(where.begin(), where.end(),
                      [&](const CellCondition& one) { return one.column == condition.column && meets(cell, one); }))
        left.push_back(cell);
    if (left.empty()) report_unmet(cells, name, condition);
    cells = std::move(left);
  }
  return cells;
}

std::vector<StoredCell> selected_cells(const std::filesystem::path& results, const std::vector<CellCondition>& where) {
  return explained(results, [&] {
    SQLite::Database database = open_for_reading(results);
    return selected_cells(database, results.string(), where);
  });
}

std::vector<CellSamples> measured_cells(const std::filesystem::path& results, std::vector<StoredCell> cells,
                                        const std::string& metric) {
  return explained(results, [&] {
    SQLite::Database database = open_for_reading(results);
    SQLite::Statement rows(database,
                           "SELECT r.ending, r.finished, m.unit, m.shape, m.value, m.array FROM replicate r LEFT JOIN "
                           "measurement m ON m.cell = r.cell AND m.replicate = r.replicate AND m.metric = ?2 "
                           "WHERE r.cell = ?1 ORDER BY r.replicate");
    std::vector<CellSamples> all;
    for (StoredCell& cell : cells) {
      CellSamples one{.cell = std::move(cell), .unit = {}};
      rows.reset();
      rows.bind(1, one.cell.id);
      rows.bind(2, metric);
      while (rows.executeStep()) {
        ++one.replicates;
        one.finished = std::max(one.finished, rows.getColumn(1).getString());
        const std::string ending = rows.getColumn(0).getString();
        if (ending != "done") {
          one.ending = ending;
          continue;
        }
        ++one.done;
        const SQLite::Column value = rows.getColumn(4), array = rows.getColumn(5);
        const bool samples = !array.isNull() && is_samples(one.cell, rows.getColumn(3).getString());
        if (value.isNull() && !samples) {
          ++one.lacking;
          continue;
        }
        one.unit = rows.getColumn(2).getString();
        if (samples) {
          const size_t first = one.samples.size(), count = static_cast<size_t>(array.getBytes()) / sizeof(double);
          one.samples.resize(first + count);
          std::memcpy(one.samples.data() + first, array.getBlob(), count * sizeof(double));
        } else {
          one.samples.push_back(value.getDouble());
        }
      }
      all.push_back(std::move(one));
    }
    return all;
  });
}

}  // namespace attnbench
