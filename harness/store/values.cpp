#include "harness/store/values.hpp"

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Statement.h>
#include <fmt/format.h>

#include <map>
#include <stdexcept>

#include "harness/store/ending.hpp"

namespace attnbench {

namespace {

// An SQL condition: the value is not one that a column of that type holds.
std::string misfit(const std::string& column, const std::string& type) {
  if (type == "TEXT") return fmt::format("NOT is_text({})", column);
  return fmt::format("typeof({}) <> '{}'", column, type == "INTEGER" ? "integer" : type == "REAL" ? "real" : "blob");
}

}  // namespace

std::vector<std::string> misfits(SQLite::Database& database) {
  SQLite::Statement select(database, R"sql(
    SELECT t.name, c.name, c.type, c."notnull" FROM sqlite_master t JOIN pragma_table_info(t.name) c
    WHERE t.type = 'table' ORDER BY t.name, c.cid)sql");
  std::map<std::string, std::string> counts;                // by table: what a query of it selects
  std::map<std::string, std::vector<std::string>> columns;  // in that order
  while (select.executeStep()) {
    const std::string table = select.getColumn(0).getString(), column = select.getColumn(1).getString();
    std::string condition = misfit(column, select.getColumn(2).getString());
    if (select.getColumn(3).getInt() == 0) condition = fmt::format("{} IS NOT NULL AND {}", column, condition);
    std::string& list = counts[table];
    list += fmt::format("{}total({})", list.empty() ? "" : ", ", condition);
    columns[table].push_back(column);
  }
  std::vector<std::string> problems;
  for (const auto& [table, list] : counts) {
    SQLite::Statement count(database, fmt::format("SELECT {} FROM {}", list, table));
    count.executeStep();
    for (size_t i = 0; i < columns[table].size(); ++i)
      if (const double found = count.getColumn(static_cast<int>(i)).getDouble(); found > 0)
        problems.push_back(fmt::format("{}.{}: {:.0f} values are not of the column's type, or are no text in UTF-8",
                                       table, columns[table][i], found));
  }
  return problems;
}

std::vector<std::string> misshapen_arrays(SQLite::Database& database) {
  const std::int64_t found = database
                                 .execAndGet(
                                     "SELECT count(*) FROM measurement WHERE array IS NOT NULL AND "
                                     "length(array) IS NOT 8 * elements(shape)")
                                 .getInt64();
  if (found == 0) return {};
  return {fmt::format("measurement.array: {} arrays do not fit their shapes", found)};
}

std::vector<std::string> unknown_endings(SQLite::Database& database) {
  SQLite::Statement select(database, "SELECT DISTINCT ending FROM replicate");
  std::vector<std::string> problems;
  while (select.executeStep()) {
    try {
      ending_kind(select.getColumn(0).getString());
    } catch (const std::invalid_argument& unknown) {
      problems.emplace_back(unknown.what());
    }
  }
  return problems;
}

}  // namespace attnbench
