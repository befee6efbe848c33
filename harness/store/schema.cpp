#include "harness/store/schema.hpp"

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "harness/errors/error.hpp"

namespace attnbench {

namespace {

constexpr std::int64_t application_id = 0x61746e62;  // "atnb"
constexpr std::int64_t schema_version = 9;           // increased with every new table or column

// digest: harness/store/digest.hpp. scripts/results_file.py has the same text, which a test compares.
// The tables panel, point, summary and look hold what figures and the page show, which harness/figures computes again
// for each report. WITHOUT ROWID keeps the measurements of a replicate together in the order of export, which then
// needs no sorting.
constexpr const char* tables = R"sql(
  CREATE TABLE run(
    id INTEGER PRIMARY KEY, started TEXT NOT NULL, command TEXT NOT NULL, environment TEXT NOT NULL,
    digest TEXT NOT NULL);
  CREATE TABLE cell(
    id INTEGER PRIMARY KEY, key TEXT UNIQUE NOT NULL, experiment TEXT NOT NULL, method TEXT NOT NULL,
    input TEXT NOT NULL, nq INTEGER NOT NULL, n INTEGER NOT NULL, d INTEGER NOT NULL, dv INTEGER NOT NULL,
    causal INTEGER NOT NULL, mask_offset INTEGER NOT NULL, mask_keys INTEGER NOT NULL, precision TEXT NOT NULL,
    heads INTEGER NOT NULL, logit_scale REAL NOT NULL, seed TEXT NOT NULL, threads INTEGER NOT NULL,
    parameters TEXT NOT NULL, source_version TEXT NOT NULL, machine TEXT NOT NULL);
  CREATE TABLE replicate(
    cell INTEGER NOT NULL REFERENCES cell(id), replicate INTEGER NOT NULL, run INTEGER NOT NULL REFERENCES run(id),
    ending TEXT NOT NULL, reason TEXT NOT NULL, seconds REAL NOT NULL, finished TEXT NOT NULL,
    measurements INTEGER NOT NULL, digest TEXT NOT NULL, PRIMARY KEY(cell, replicate)) WITHOUT ROWID;
  CREATE TABLE measurement(
    cell INTEGER NOT NULL, replicate INTEGER NOT NULL, metric TEXT NOT NULL, unit TEXT NOT NULL, shape TEXT NOT NULL,
    value REAL, array BLOB, PRIMARY KEY(cell, replicate, metric),
    FOREIGN KEY(cell, replicate) REFERENCES replicate(cell, replicate),
    CHECK((value IS NULL) <> (array IS NULL))) WITHOUT ROWID;
  CREATE TABLE figure(
    recipe TEXT NOT NULL, name TEXT NOT NULL, position INTEGER NOT NULL, json TEXT NOT NULL, written TEXT NOT NULL,
    digest TEXT NOT NULL, PRIMARY KEY(recipe, name));
  CREATE TABLE verdict(
    recipe TEXT NOT NULL, position INTEGER NOT NULL, outcome TEXT NOT NULL, statement TEXT NOT NULL,
    numbers TEXT NOT NULL, written TEXT NOT NULL, region TEXT NOT NULL, expected TEXT NOT NULL, source TEXT NOT NULL,
    quotation TEXT NOT NULL, paraphrase TEXT NOT NULL, definition TEXT NOT NULL, threshold TEXT NOT NULL,
    because TEXT NOT NULL, kind TEXT NOT NULL, compared TEXT NOT NULL, PRIMARY KEY(recipe, position));
  CREATE TABLE reproduction(
    recipe TEXT PRIMARY KEY, size TEXT NOT NULL, command TEXT NOT NULL, seconds REAL NOT NULL, cells TEXT NOT NULL,
    written TEXT NOT NULL, digest TEXT NOT NULL);
  CREATE TABLE panel(
    recipe TEXT NOT NULL, figure TEXT NOT NULL, panel INTEGER NOT NULL, json TEXT NOT NULL,
    PRIMARY KEY(recipe, figure, panel)) WITHOUT ROWID;
  CREATE TABLE point(
    recipe TEXT NOT NULL, figure TEXT NOT NULL, panel INTEGER NOT NULL, point INTEGER NOT NULL, series TEXT NOT NULL,
    role TEXT NOT NULL, x REAL, x_low REAL, x_high REAL, y REAL, low REAL, high REAL, theory REAL, value REAL,
    replicates INTEGER NOT NULL, samples INTEGER NOT NULL, exponent REAL, exponent_low REAL, exponent_high REAL,
    crossing REAL, crossing_low REAL, crossing_high REAL, note TEXT NOT NULL,
    PRIMARY KEY(recipe, figure, panel, point)) WITHOUT ROWID;
  CREATE TABLE summary(
    cell INTEGER NOT NULL, metric TEXT NOT NULL, unit TEXT NOT NULL, mean REAL, low REAL, high REAL, median REAL,
    median_low REAL, median_high REAL, replicates INTEGER NOT NULL, samples INTEGER NOT NULL,
    PRIMARY KEY(cell, metric)) WITHOUT ROWID;
  CREATE TABLE look(method TEXT PRIMARY KEY, json TEXT NOT NULL) WITHOUT ROWID;
)sql";

// A table, index, view or trigger, as SQLite keeps it.
struct Part {
  std::string type, sql;
};
using Parts = std::map<std::string, Part>;  // by name

// Indexes that SQLite makes for the constraints of a table have no SQL of their own.
Parts parts_of(SQLite::Database& database) {
  SQLite::Statement select(database, "SELECT name, type, sql FROM sqlite_master WHERE sql IS NOT NULL");
  Parts parts;
  while (select.executeStep())
    parts[select.getColumn(0).getString()] = {select.getColumn(1).getString(), select.getColumn(2).getString()};
  return parts;
}

std::vector<std::string> columns_of(SQLite::Database& database, const std::string& table) {
  SQLite::Statement select(database, "SELECT name FROM pragma_table_xinfo(?) ORDER BY name");
  select.bind(1, table);
  std::vector<std::string> names;
  while (select.executeStep()) names.push_back(select.getColumn(0).getString());
  return names;
}

// How a table whose SQL differs departs from ours. The names that it prints are ours: those of a foreign file may hold
// anything.
std::string departure(SQLite::Database& database, SQLite::Database& ours, const std::string& table) {
  const auto expected = columns_of(ours, table), found = columns_of(database, table);
  for (const std::string& column : expected)
    if (std::ranges::find(found, column) == found.end())
      return fmt::format("its table {} has no column {}", table, column);
  if (found.size() > expected.size())
    return fmt::format("its table {} has {} columns instead of {}", table, found.size(), expected.size());
  return fmt::format("its table {} has columns of other types or constraints", table);
}

// Returns the first difference from the schema that the program would have made; empty if the two are equal.
std::string foreign_part(SQLite::Database& database) {
  SQLite::Database ours(":memory:", SQLite::OPEN_READWRITE);
  ours.exec(tables);
  const Parts expected = parts_of(ours), found = parts_of(database);
  for (const auto& [name, part] : expected) {
    const auto there = found.find(name);
    if (there == found.end()) return fmt::format("its {} {} is missing", part.type, name);
    if (there->second.type != part.type)
      return fmt::format("it has a foreign {} in place of the {} {}", there->second.type, part.type, name);
    if (there->second.sql != part.sql) return departure(database, ours, name);
  }
  for (const auto& [name, part] : found)
    if (!expected.contains(name)) return fmt::format("it has a foreign {}", part.type);
  return "";
}

}  // namespace

void require_our_tables(const std::filesystem::path& path, SQLite::Database& database) {
  const std::string foreign = foreign_part(database);
  if (foreign.empty()) return;
  throw Misuse(fmt::format(
      "'{0}' is not a results file as attnbench makes them: {1}; expected the tables of schema {2} and nothing "
      "else; nothing in it was run and it is left untouched: `sqlite3 '{0}' .schema` shows it; restore a "
      "copy, or give another path",
      path.string(), foreign, schema_version));
}

void require_our_schema(const std::filesystem::path& path, std::int64_t application, std::int64_t version) {
  if (application != application_id)
    throw Misuse(
        fmt::format("'{}' is an SQLite database of another program; expected a results file of attnbench; it "
                    "is left untouched: give another path",
                    path.string()));
  if (version == schema_version) return;
  throw Misuse(fmt::format("'{}' has results schema {}; this attnbench reads only schema {}; {}, or give another path",
                           path.string(), version, schema_version,
                           version > schema_version ? "use the newer attnbench that wrote it"
                           : version < 1            ? "it may be damaged"
                                                    : "use the older attnbench that wrote it"));
}

// Creates the schema in one transaction in rollback mode, so that the file's header names us before a log can exist,
// and two runs that start together agree on who creates it.
void require_or_create_schema(const std::filesystem::path& path, SQLite::Database& database) {
  SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
  const bool empty = database.execAndGet("SELECT count(*) FROM sqlite_master").getInt() == 0;
  const std::int64_t application = database.execAndGet("PRAGMA application_id").getInt64();
  if (!empty || application != 0) {
    require_our_schema(path, application, database.execAndGet("PRAGMA user_version").getInt64());
    return require_our_tables(path, database);
  }
  database.exec(tables);
  database.exec(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", application_id, schema_version));
  transaction.commit();
}

}  // namespace attnbench
