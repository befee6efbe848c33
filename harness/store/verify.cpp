#include "harness/store/verify.hpp"

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>

#include "harness/store/database.hpp"

namespace attnbench {

namespace {

constexpr int most_of_a_kind = 20;

// Each query returns one line per violation, and nothing for an intact file.
struct Rule {
  const char* what;
  const char* violations;
};
constexpr const char* place =  // of replicate r of cell c
    "c.experiment || ' ' || c.method || ' ' || c.input || ' n=' || c.n || ' replicate ' || r.replicate";
const std::vector<Rule>& rules() {
  static const std::string missing = fmt::format(
      "SELECT {} || ': ' || (SELECT count(*) FROM measurement m WHERE m.cell = r.cell AND m.replicate = r.replicate) "
      "|| "
      "' of ' || r.measurements FROM replicate r JOIN cell c ON c.id = r.cell WHERE r.measurements <> "
      "(SELECT count(*) FROM measurement m WHERE m.cell = r.cell AND m.replicate = r.replicate)",
      place);
  static const std::string empty = fmt::format(
      "SELECT {} FROM replicate r JOIN cell c ON c.id = r.cell WHERE r.ending = 'done' AND r.measurements = 0", place);
  static const std::string silent = fmt::format(
      "SELECT {} || ': ' || r.ending FROM replicate r JOIN cell c ON c.id = r.cell "
      "WHERE (r.ending = 'done') <> (r.reason = '')",
      place);
  static const std::vector<Rule> all{
      {"damaged", "SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok'"},
      {"a scalar has a shape, or an array has none",
       "SELECT metric || ' ' || shape FROM measurement WHERE (shape = '[]') <> (array IS NULL)"},
      {"a row of another table is missing",
       "SELECT \"table\" || ' refers to a ' || parent || ' that is not there' FROM pragma_foreign_key_check"},
      {"measurements are missing or too many", missing.c_str()},
      {"done without a measurement", empty.c_str()},
      {"a reason is missing, or a done replicate has one", silent.c_str()},
      {"a cell without a replicate",
       "SELECT experiment || ' ' || method || ' ' || input || ' n=' || n FROM cell c "
       "WHERE NOT EXISTS (SELECT 1 FROM replicate WHERE cell = c.id)"}};
  return all;
}

std::string text_of(const SQLite::Column& column) { return column.isNull() ? "" : column.getString(); }

void check_rules(SQLite::Database& database, std::vector<std::string>& problems) {
  for (const Rule& rule : rules()) {
    SQLite::Statement select(database, fmt::format("{} LIMIT {}", rule.violations, most_of_a_kind));
    while (select.executeStep()) problems.push_back(fmt::format("{}: {}", rule.what, text_of(select.getColumn(0))));
  }
}

void check_endings(SQLite::Database& database, Verification& found) {
  SQLite::Statement select(database, "SELECT ending, count(*) FROM replicate GROUP BY ending");
  while (select.executeStep()) {
    const std::string ending = select.getColumn(0).getString();
    found.endings[ending] = select.getColumn(1).getInt64();
    try {
      ending_kind(ending);
    } catch (const std::invalid_argument& unknown) {
      found.problems.emplace_back(unknown.what());
    }
  }
}

// Describes what is wrong with an array and its stored shape; empty if they agree.
std::string flaw(const std::string& shape_text, std::span<const char> bytes) {
  const auto shape = nlohmann::json::parse(shape_text, nullptr, false);
  if (!shape.is_array()) return fmt::format("its shape '{}' is no list", shape_text);
  Index elements = 1;
  for (const auto& axis : shape) {
    if (!axis.is_number_integer()) return fmt::format("its shape '{}' is no list of integers", shape_text);
    elements *= axis.get<Index>();
  }
  if (std::ssize(bytes) != elements * Index{sizeof(double)})
    return fmt::format("has {} bytes; its shape {} needs {}", bytes.size(), shape_text,
                       elements * Index{sizeof(double)});
  for (size_t at = 0; at < bytes.size(); at += sizeof(double)) {
    double element;
    std::memcpy(&element, &bytes[at], sizeof element);  // SQLite does not align blobs
    if (std::isnan(element)) return fmt::format("has a NaN at place {}", at / sizeof(double));
  }
  return "";
}

// Scalars need no check for NaN: SQLite stores NULL instead, and the table's CHECK refuses that.
void check_arrays(SQLite::Database& database, std::vector<std::string>& problems) {
  SQLite::Statement select(database,
                           "SELECT shape, array, metric, cell, replicate FROM measurement WHERE array IS NOT NULL");
  SQLite::Statement name(database,
                         fmt::format("SELECT {} FROM replicate r JOIN cell c ON c.id = r.cell WHERE c.id = ? AND "
                                     "r.replicate = ?",
                                     place));
  int flaws = 0;
  while (flaws < most_of_a_kind && select.executeStep()) {
    const SQLite::Column array = select.getColumn(1);
    const std::string what = flaw(select.getColumn(0).getString(),
                                  {static_cast<const char*>(array.getBlob()), static_cast<size_t>(array.getBytes())});
    if (what.empty()) continue;
    ++flaws;
    name.reset();
    name.bind(1, select.getColumn(3).getInt64());
    name.bind(2, select.getColumn(4).getInt64());
    const std::string where = name.executeStep() ? name.getColumn(0).getString() : "a replicate that is not there";
    problems.push_back(fmt::format("{} of {}: {}", select.getColumn(2).getString(), where, what));
  }
}

// Remarks on a metric that only some of a cell's done replicates have.
void compare_replicates(SQLite::Database& database, std::vector<std::string>& remarks) {
  SQLite::Statement select(database, fmt::format(R"sql(
    SELECT c.experiment || ' ' || c.method || ' ' || c.input || ' n=' || c.n || ': ' || m.metric || ' in '
           || count(*) || ' of ' || done.replicates || ' replicates'
    FROM measurement m
    JOIN (SELECT cell, count(*) AS replicates FROM replicate WHERE ending = 'done' GROUP BY cell) done USING (cell)
    JOIN cell c ON c.id = m.cell JOIN replicate r ON r.cell = m.cell AND r.replicate = m.replicate
    WHERE r.ending = 'done' GROUP BY m.cell, m.metric HAVING count(*) < done.replicates LIMIT {})sql",
                                                 most_of_a_kind));
  while (select.executeStep()) remarks.push_back(select.getColumn(0).getString());
}

}  // namespace

Verification verify(const std::filesystem::path& path) {
  Verification found;
  try {
    SQLite::Database database = open_for_reading(path);
    const SQLite::Transaction snapshot(database);
    const auto count = [&](const char* table) {
      return Index{database.execAndGet(fmt::format("SELECT count(*) FROM {}", table)).getInt64()};
    };
    found.runs = count("run");
    found.cells = count("cell");
    found.replicates = count("replicate");
    found.measurements = count("measurement");
    check_rules(database, found.problems);
    check_endings(database, found);
    check_arrays(database, found.problems);
    compare_replicates(database, found.remarks);
  } catch (const Damage& damage) {
    found.problems.emplace_back(damage.what());
  } catch (const SQLite::Exception& error) {
    found.problems.push_back(fmt::format("'{}' cannot be read completely: {}", path.string(), error.what()));
  }
  return found;
}

}  // namespace attnbench
