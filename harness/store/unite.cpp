#include "harness/store/unite.hpp"

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <fmt/format.h>

#include "harness/store/database.hpp"
#include "harness/store/digest.hpp"

namespace attnbench {

namespace {

// The two replicates that a row of `met` names have the same number of measurements, and each of ours equals one of
// theirs.
constexpr const char* equal_numbers = R"sql(
  (SELECT count(*) FROM main.measurement WHERE cell = met.ours AND replicate = met.replicate)
  = (SELECT count(*) FROM part.measurement WHERE cell = met.theirs AND replicate = met.replicate)
  AND NOT EXISTS (
    SELECT 1 FROM main.measurement a LEFT JOIN part.measurement b
    ON b.cell = met.theirs AND b.replicate = met.replicate AND b.metric = a.metric
    WHERE a.cell = met.ours AND a.replicate = met.replicate
    AND (a.unit, a.shape, a.value, a.array) IS NOT (b.unit, b.shape, b.value, b.array)))sql";

// Copies runs and cells of the part, and maps their ids to ours. Time, command and environment of its start identify a
// run.
const std::string unite_runs_and_cells = fmt::format(R"sql(
  INSERT INTO main.run(started, command, environment, digest)
    SELECT started, command, environment, digest FROM part.run p WHERE NOT EXISTS (
      SELECT 1 FROM main.run r WHERE r.started = p.started AND r.command = p.command AND r.environment = p.environment)
    GROUP BY started, command, environment ORDER BY min(id);
  CREATE TEMP TABLE run_map AS SELECT p.id AS theirs, min(r.id) AS ours FROM part.run p
    JOIN main.run r ON r.started = p.started AND r.command = p.command AND r.environment = p.environment GROUP BY p.id;
  INSERT INTO main.cell({0}) SELECT {0} FROM part.cell WHERE true ORDER BY id ON CONFLICT(key) DO NOTHING;
  CREATE TEMP TABLE cell_map(theirs INTEGER PRIMARY KEY, ours INTEGER NOT NULL);
  INSERT INTO cell_map SELECT p.id, c.id FROM part.cell p JOIN main.cell c ON c.key = p.key)sql",
                                                     cell_columns_in_sql(""));

// Replicates that both files have. Settled wins over unsettled, then the earlier; the reason breaks ties in time.
const std::string meet = fmt::format(R"sql(
  CREATE TEMP TABLE met AS
    SELECT m.ours, m.theirs, p.replicate,
           a.ending IN {0} AND p.ending IN {0} AS both_settled, a.ending = p.ending AS same_ending,
           (p.ending NOT IN {0}, p.finished, p.seconds, p.ending, p.reason)
             < (a.ending NOT IN {0}, a.finished, a.seconds, a.ending, a.reason) AS theirs_first,
           (SELECT threads FROM main.cell WHERE id = m.ours) > 0 AS timing
    FROM cell_map m CROSS JOIN part.replicate p ON p.cell = m.theirs
    JOIN main.replicate a ON a.cell = m.ours AND a.replicate = p.replicate)sql",
                                     settled_endings);

constexpr const char* unite_replicates = R"sql(
  DELETE FROM main.measurement WHERE (cell, replicate) IN (SELECT ours, replicate FROM met WHERE theirs_first);
  DELETE FROM main.replicate WHERE (cell, replicate) IN (SELECT ours, replicate FROM met WHERE theirs_first);
  CREATE TEMP TABLE taken AS
    SELECT m.ours AS cell, m.theirs, p.replicate, r.ours AS run
    FROM cell_map m CROSS JOIN part.replicate p ON p.cell = m.theirs JOIN run_map r ON r.theirs = p.run
    WHERE NOT EXISTS (SELECT 1 FROM main.replicate a WHERE a.cell = m.ours AND a.replicate = p.replicate);
  INSERT INTO main.replicate(cell, replicate, run, ending, reason, seconds, finished, measurements, digest)
    SELECT t.cell, t.replicate, t.run, p.ending, p.reason, p.seconds, p.finished, p.measurements, p.digest
    FROM taken t CROSS JOIN part.replicate p ON p.cell = t.theirs AND p.replicate = t.replicate;
  INSERT INTO main.measurement(cell, replicate, metric, unit, shape, value, array)
    SELECT t.cell, t.replicate, p.metric, p.unit, p.shape, p.value, p.array
    FROM taken t CROSS JOIN part.measurement p ON p.cell = t.theirs AND p.replicate = t.replicate)sql";

// The newest wins. Ties within one second are broken by content, so the order of files does not matter.
constexpr const char* unite_figures_and_verdicts = R"sql(
  INSERT INTO main.figure(recipe, name, position, json, written, digest)
    SELECT recipe, name, position, json, written, digest FROM part.figure WHERE true
    ON CONFLICT(recipe, name) DO UPDATE
      SET position = excluded.position, json = excluded.json, written = excluded.written, digest = excluded.digest
      WHERE (excluded.written, excluded.json) > (figure.written, figure.json);
  CREATE TEMP TABLE newer AS
    WITH said AS (
      SELECT 1 AS theirs, recipe, group_concat(outcome || statement || numbers) AS words FROM part.verdict
        GROUP BY recipe
      UNION ALL
      SELECT 0, recipe, group_concat(outcome || statement || numbers) FROM main.verdict GROUP BY recipe),
    all_of AS (
      SELECT 1 AS theirs, recipe, written, cells FROM part.reproduction
      UNION ALL SELECT 0, recipe, written, cells FROM main.reproduction),
    known AS (
      SELECT a.theirs, a.recipe, a.written, coalesce(s.words, '') || a.cells AS said
      FROM all_of a LEFT JOIN said s ON s.recipe = a.recipe AND s.theirs = a.theirs)
    SELECT t.recipe FROM known t LEFT JOIN known o ON o.recipe = t.recipe AND o.theirs = 0
    WHERE t.theirs = 1 AND (o.recipe IS NULL OR (t.written, t.said) > (o.written, o.said));
  DELETE FROM main.verdict WHERE recipe IN (SELECT recipe FROM newer);
  DELETE FROM main.reproduction WHERE recipe IN (SELECT recipe FROM newer);
  INSERT INTO main.verdict(recipe, position, outcome, statement, numbers, region, expected, source, written, quotation,
                           paraphrase, definition, threshold, because, kind, compared)
    SELECT recipe, position, outcome, statement, numbers, region, expected, source, written, quotation, paraphrase,
           definition, threshold, because, kind, compared FROM part.verdict
    WHERE recipe IN (SELECT recipe FROM newer);
  INSERT INTO main.reproduction(recipe, size, command, seconds, cells, written, digest)
    SELECT recipe, size, command, seconds, cells, written, digest FROM part.reproduction
    WHERE recipe IN (SELECT recipe FROM newer))sql";

constexpr const char* forget =
    "DROP TABLE run_map; DROP TABLE cell_map; DROP TABLE met; DROP TABLE taken; DROP TABLE newer";

Index count(SQLite::Database& database, const std::string& query) {
  return database.execAndGet("SELECT count(*) FROM " + query).getInt64();
}

// The first metric that one of two replicates lacks or that differs, as text.
std::string first_difference(SQLite::Database& database, std::int64_t ours, std::int64_t theirs, Index replicate) {
  SQLite::Statement select(database, R"sql(
    SELECT name, a.value, b.value, a.metric IS NULL OR b.metric IS NULL
    FROM (SELECT metric AS name FROM main.measurement WHERE cell = ?1 AND replicate = ?3 UNION
          SELECT metric FROM part.measurement WHERE cell = ?2 AND replicate = ?3)
    LEFT JOIN main.measurement a ON a.cell = ?1 AND a.replicate = ?3 AND a.metric = name
    LEFT JOIN part.measurement b ON b.cell = ?2 AND b.replicate = ?3 AND b.metric = name
    WHERE (a.unit, a.shape, a.value, a.array) IS NOT (b.unit, b.shape, b.value, b.array) ORDER BY name)sql");
  select.bind(1, ours);
  select.bind(2, theirs);
  select.bind(3, std::int64_t{replicate});
  if (!select.executeStep()) return "how it ended";
  const std::string metric = select.getColumn(0).getString();
  if (select.getColumn(3).getInt() != 0) return metric + ", which only one of them has";
  if (select.getColumn(1).isNull() || select.getColumn(2).isNull()) return metric + ", an array";
  return fmt::format("{} = {} and {}", metric, select.getColumn(1).getDouble(), select.getColumn(2).getDouble());
}

// who: the files that the numbers belong to, for the error message.
void require_equal_numbers(SQLite::Database& database, const std::string& who) {
  const std::string differ =
      fmt::format("met WHERE both_settled AND NOT timing AND (NOT same_ending OR NOT ({}))", equal_numbers);
  SQLite::Statement select(database, "SELECT ours, theirs, replicate FROM " + differ + " ORDER BY ours, replicate");
  if (!select.executeStep()) return;
  const std::int64_t ours = select.getColumn(0).getInt64(), theirs = select.getColumn(1).getInt64();
  const Index replicate = select.getColumn(2).getInt64();
  SQLite::Statement cell(
      database, "SELECT experiment || ' ' || method || ' ' || input || ' n=' || n FROM main.cell WHERE id = ?");
  cell.bind(1, ours);
  cell.executeStep();
  throw Misuse(fmt::format(
      "{} have different numbers for {} replicates of the same cells, sources and seeds; the first: {}, replicate {}: "
      "{}; expected equal numbers, and nothing was written; another compiler or processor rounds differently: "
      "`attnbench compare` shows by how much; leave one file out",
      who, count(database, differ), cell.getColumn(0).getString(), replicate,
      first_difference(database, ours, theirs, replicate)));
}

// The digest of a replicate covers its cell, so that two cells under one key cannot become one.
void require_equal_cells(SQLite::Database& database, const std::string& who) {
  static const std::string differ = fmt::format(
      "SELECT c.experiment || ' ' || c.method || ' ' || c.input || ' n=' || c.n FROM part.cell p "
      "JOIN main.cell c ON c.key = p.key WHERE ({}) IS NOT ({}) ORDER BY c.id",
      cell_columns_in_sql("p."), cell_columns_in_sql("c."));
  SQLite::Statement select(database, differ);
  if (select.executeStep())
    throw Misuse(fmt::format(
        "{} have different cells under one key; the first: {}; expected equal ones, and nothing was written; "
        "one of the files was altered: leave it out",
        who, select.getColumn(0).getString()));
}

// Number of cells that are equal except for `column` (and the key, which depends on it).
Index apart_by(SQLite::Database& database, const std::string& column, const std::string& other) {
  return count(database,
               fmt::format("(SELECT 1 FROM main.cell GROUP BY experiment, method, input, nq, n, d, dv, causal, "
                           "mask_offset, mask_keys, precision, heads, logit_scale, seed, threads, parameters, {} "
                           "HAVING count(DISTINCT {}) > 1)",
                           other, column));
}

}  // namespace

void unite(SQLite::Database& database, const std::string& who, Merged& merged) {
  SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
  const Index before = count(database, "main.replicate");
  require_equal_cells(database, who);
  database.exec(unite_runs_and_cells);
  database.exec(meet);
  require_equal_numbers(database, who);
  merged.timed_twice += count(database, fmt::format("met WHERE timing AND both_settled AND NOT ({})", equal_numbers));
  database.exec(unite_replicates);
  database.exec(unite_figures_and_verdicts);
  database.exec(forget);
  merged.added = count(database, "main.replicate") - before;
  transaction.commit();
}

void count_all(SQLite::Database& database, Merged& merged) {
  merged.cells = count(database, "main.cell");
  merged.replicates = count(database, "main.replicate");
  merged.with_several_versions = apart_by(database, "source_version", "machine");
  merged.timed_on_several_machines = apart_by(database, "machine", "source_version");
}

}  // namespace attnbench
