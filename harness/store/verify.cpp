#include "harness/store/verify.hpp"

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <optional>
#include <span>

#include "harness/store/database.hpp"
#include "harness/store/digest.hpp"
#include "harness/store/shape.hpp"
#include "harness/store/text.hpp"
#include "harness/store/values.hpp"

namespace attnbench {

namespace {

constexpr int most_of_a_kind = 20;

// Each query returns one line per violation, and nothing for an intact file.
struct Rule {
  const char* what;
  std::string violations;
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
      {"measurements are missing or too many", missing},
      {"done without a measurement", empty},
      {"a reason is missing, or a done replicate has one", silent},
      {"a cell without a replicate",
       "SELECT experiment || ' ' || method || ' ' || input || ' n=' || n FROM cell c "
       "WHERE NOT EXISTS (SELECT 1 FROM replicate WHERE cell = c.id)"},
      {"a verdict of a recipe that is not there",
       "SELECT recipe FROM verdict WHERE recipe NOT IN (SELECT recipe FROM reproduction)"}};
  return all;
}

std::vector<Rule> rules_of_digests() {
  std::vector<Rule> all;
  for (const auto& [table, place, digest] : sealed_tables())
    all.push_back({"altered", fmt::format("SELECT {} FROM {} WHERE digest IS NOT {}", place, table, digest)});
  return all;
}

std::string text_of(const SQLite::Column& column) { return column.isNull() ? "" : column.getString(); }

void check_rules(SQLite::Database& database, const std::vector<Rule>& rules, std::vector<std::string>& problems) {
  for (const Rule& rule : rules) {
    SQLite::Statement select(database, fmt::format("{} LIMIT {}", rule.violations, most_of_a_kind));
    while (select.executeStep()) problems.push_back(fmt::format("{}: {}", rule.what, text_of(select.getColumn(0))));
  }
}

void count_endings(SQLite::Database& database, std::map<std::string, Index>& endings) {
  SQLite::Statement select(database, "SELECT ending, count(*) FROM replicate GROUP BY ending");
  while (select.executeStep()) endings[on_one_line(select.getColumn(0).getString())] = select.getColumn(1).getInt64();
}

// Describes what is wrong with an array and its stored shape; empty if they agree.
std::string flaw(const std::string& shape_text, std::span<const char> bytes) {
  const std::optional<Index> elements = elements_of(shape_text);
  if (!elements) return fmt::format("its shape '{}' is not a list of sizes such as [4,64]", shape_text);
  if (std::ssize(bytes) != *elements * Index{sizeof(double)})
    return fmt::format("has {} bytes; its shape {} needs {}", bytes.size(), shape_text,
                       *elements * Index{sizeof(double)});
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

void find_problems(SQLite::Database& database, std::vector<std::string>& problems) {
  check_rules(database, rules(), problems);
  for (const std::string& problem : misfits(database)) problems.push_back(problem);
  for (const std::string& problem : unknown_endings(database)) problems.push_back(problem);
  check_arrays(database, problems);
  check_rules(database, rules_of_digests(), problems);
}

// Throws Damage or SQLite's exception for what cannot be read.
void read_everything(const std::filesystem::path& path, Verification& found) {
  SQLite::Database database = open_for_verifying(path);
  const SQLite::Transaction snapshot(database);
  const auto count = [&](const char* table) {
    return Index{database.execAndGet(fmt::format("SELECT count(*) FROM {}", table)).getInt64()};
  };
  found.runs = count("run");
  found.cells = count("cell");
  found.replicates = count("replicate");
  found.measurements = count("measurement");
  count_endings(database, found.endings);
  find_problems(database, found.problems);
  compare_replicates(database, found.remarks);
  // They quote texts of the file, which may hold anything.
  for (auto* lines : {&found.problems, &found.remarks})
    for (std::string& line : *lines) line = on_one_line(line);
}

}  // namespace

Verification verify(const std::filesystem::path& path) {
  Verification found;
  try {
    read_everything(path, found);
  } catch (const Damage& damage) {
    found.problems.emplace_back(damage.what());
  } catch (const SQLite::Exception& error) {
    found.problems.push_back(fmt::format("'{}' cannot be read completely: {}", path.string(), error.what()));
  }
  return found;
}

void require_whole(const std::filesystem::path& path) {
  Verification found;
  explained(path, [&] { read_everything(path, found); });
  if (!found.problems.empty()) report_alteration(path, found.problems.front());
}

}  // namespace attnbench
