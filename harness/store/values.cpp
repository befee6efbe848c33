#include "harness/store/values.hpp"

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Statement.h>
#include <fmt/format.h>

#include <map>
#include <stdexcept>

#include "harness/store/ending.hpp"

namespace attnbench {

namespace {

struct Column {
  std::string name, type;
  bool may_be_null;
};

std::map<std::string, std::vector<Column>> columns_by_table(SQLite::Database& database) {
  SQLite::Statement select(database, R"sql(
    SELECT t.name, c.name, c.type, c."notnull" FROM sqlite_master t JOIN pragma_table_info(t.name) c
    WHERE t.type = 'table' ORDER BY t.name, c.cid)sql");
  std::map<std::string, std::vector<Column>> columns;
  while (select.executeStep())
    columns[select.getColumn(0).getString()].push_back(
        {select.getColumn(1).getString(), select.getColumn(2).getString(), select.getColumn(3).getInt() == 0});
  return columns;
}

// An SQL condition: the value is not one that the column holds.
std::string misfit(const Column& column) {
  const std::string& name = column.name;
  const char* type = column.type == "INTEGER" ? "integer" : column.type == "REAL" ? "real" : "blob";
  const std::string condition =
      column.type == "TEXT" ? fmt::format("NOT is_text({})", name) : fmt::format("typeof({}) <> '{}'", name, type);
  return column.may_be_null ? fmt::format("({} IS NOT NULL AND {})", name, condition) : condition;
}

// Whether any row has a misfit. One call for all texts of a row takes half the time of one call for each.
bool any_misfit(SQLite::Database& database, const std::string& table, const std::vector<Column>& columns) {
  std::string texts, conditions;
  for (const Column& column : columns)
    if (column.type == "TEXT" && !column.may_be_null)
      texts += (texts.empty() ? "" : ", ") + column.name;
    else
      conditions += " OR " + misfit(column);
  return database
             .execAndGet(
                 fmt::format("SELECT EXISTS(SELECT 1 FROM {} WHERE NOT is_text({}){})", table, texts, conditions))
             .getInt() != 0;
}

}  // namespace

std::vector<std::string> misfits(SQLite::Database& database) {
  std::vector<std::string> problems;
  for (const auto& [table, columns] : columns_by_table(database)) {
    if (!any_misfit(database, table, columns)) continue;
    for (const Column& column : columns) {
      const std::int64_t found =
          database.execAndGet(fmt::format("SELECT count(*) FROM {} WHERE {}", table, misfit(column))).getInt64();
      if (found > 0)
        problems.push_back(fmt::format("{}.{}: {} values are not of the column's type, or are not text in UTF-8", table,
                                       column.name, found));
    }
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
