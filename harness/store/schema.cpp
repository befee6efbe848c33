#include "harness/store/schema.hpp"

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <fmt/format.h>

#include <array>
#include <vector>

#include "harness/errors/error.hpp"
#include "harness/random/streams.hpp"
#include "harness/store/environment.hpp"
#include "harness/store/store.hpp"

namespace attnbench {

namespace {

constexpr std::int64_t application_id = 0x61746e62;  // "atnb"

// WITHOUT ROWID keeps the measurements of a replicate side by side in the order of export, which then sorts nothing.
constexpr const char* first_schema = R"sql(
  CREATE TABLE run(id INTEGER PRIMARY KEY, started TEXT NOT NULL, command TEXT NOT NULL, environment TEXT NOT NULL);
  CREATE TABLE cell(
    id INTEGER PRIMARY KEY, key TEXT UNIQUE NOT NULL, experiment TEXT NOT NULL, method TEXT NOT NULL,
    input TEXT NOT NULL, nq INTEGER NOT NULL, n INTEGER NOT NULL, d INTEGER NOT NULL, dv INTEGER NOT NULL,
    causal INTEGER NOT NULL, mask_offset INTEGER NOT NULL, mask_keys INTEGER NOT NULL, precision TEXT NOT NULL,
    heads INTEGER NOT NULL, logit_scale REAL NOT NULL, seed TEXT NOT NULL, threads INTEGER NOT NULL,
    parameters TEXT NOT NULL, source_version TEXT NOT NULL);
  CREATE TABLE replicate(
    cell INTEGER NOT NULL REFERENCES cell(id), replicate INTEGER NOT NULL, run INTEGER NOT NULL REFERENCES run(id),
    ending TEXT NOT NULL, reason TEXT NOT NULL, seconds REAL NOT NULL, finished TEXT NOT NULL,
    PRIMARY KEY(cell, replicate)) WITHOUT ROWID;
  CREATE TABLE measurement(
    cell INTEGER NOT NULL, replicate INTEGER NOT NULL, metric TEXT NOT NULL, unit TEXT NOT NULL, shape TEXT NOT NULL,
    value REAL, array BLOB, PRIMARY KEY(cell, replicate, metric),
    FOREIGN KEY(cell, replicate) REFERENCES replicate(cell, replicate),
    CHECK((value IS NULL) <> (array IS NULL))) WITHOUT ROWID;
  CREATE TABLE figure(
    recipe TEXT NOT NULL, name TEXT NOT NULL, position INTEGER NOT NULL, json TEXT NOT NULL,
    PRIMARY KEY(recipe, name));
)sql";

void add_verdicts(SQLite::Database& database) {
  database.exec(R"sql(
    CREATE TABLE verdict(
      recipe TEXT NOT NULL, position INTEGER NOT NULL, outcome TEXT NOT NULL, statement TEXT NOT NULL,
      numbers TEXT NOT NULL, PRIMARY KEY(recipe, position)))sql");
}

struct Place {
  std::int64_t cell, run;
  std::string key, machine;
};

// Timing cells and the runs that measured them, by machine within a cell.
std::vector<Place> places_of_timings(SQLite::Database& database) {
  SQLite::Statement select(database, R"sql(
    SELECT DISTINCT c.id, r.run, c.key, run.environment FROM cell c JOIN replicate r ON r.cell = c.id
    JOIN run ON run.id = r.run WHERE c.threads > 0 ORDER BY c.id, r.run)sql");
  std::vector<Place> places;
  while (select.executeStep())
    places.push_back({select.getColumn(0).getInt64(), select.getColumn(1).getInt64(), select.getColumn(2).getString(),
                      machine_of(select.getColumn(3).getString())});
  return places;
}

// Moves what that run measured of the cell to the cell of its machine, which is made when it is not there yet.
void move_to_machine(SQLite::Database& database, const Place& place) {
  const std::string key = key_on(place.key, place.machine);
  SQLite::Statement make(database, R"sql(
    INSERT INTO cell(key, experiment, method, input, nq, n, d, dv, causal, mask_offset, mask_keys, precision, heads,
                     logit_scale, seed, threads, parameters, source_version, machine)
    SELECT ?, experiment, method, input, nq, n, d, dv, causal, mask_offset, mask_keys, precision, heads,
           logit_scale, seed, threads, parameters, source_version, ?
    FROM cell WHERE id = ? ON CONFLICT(key) DO NOTHING)sql");
  make.bind(1, key);
  make.bind(2, place.machine);
  make.bind(3, place.cell);
  make.exec();
  for (const char* update : {"UPDATE measurement SET cell = (SELECT id FROM cell WHERE key = ?1) WHERE cell = ?2 AND "
                             "replicate IN (SELECT replicate FROM replicate WHERE cell = ?2 AND run = ?3)",
                             "UPDATE replicate SET cell = (SELECT id FROM cell WHERE key = ?1) "
                             "WHERE cell = ?2 AND run = ?3"}) {
    SQLite::Statement move(database, update);
    move.bind(1, key);
    move.bind(2, place.cell);
    move.bind(3, place.run);
    move.exec();
  }
}

// Timings are of one machine, replicates know how many measurements they have, figures and verdicts when they were
// made.
void add_machines_and_counts(SQLite::Database& database) {
  database.exec(R"sql(
    ALTER TABLE cell ADD COLUMN machine TEXT NOT NULL DEFAULT '';
    ALTER TABLE replicate ADD COLUMN measurements INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE figure ADD COLUMN written TEXT NOT NULL DEFAULT '';
    ALTER TABLE verdict ADD COLUMN written TEXT NOT NULL DEFAULT '';
    UPDATE replicate SET measurements = (SELECT count(*) FROM measurement m
      WHERE m.cell = replicate.cell AND m.replicate = replicate.replicate);
    UPDATE figure SET written = coalesce((SELECT max(started) FROM run), '');
    UPDATE verdict SET written = coalesce((SELECT max(started) FROM run), ''))sql");
  const std::vector<Place> places = places_of_timings(database);
  SQLite::Statement rename(database, "UPDATE figure SET json = replace(json, ?, ?)");  // figures name their cells
  for (size_t i = 0; i < places.size(); ++i) {
    move_to_machine(database, places[i]);
    if (i > 0 && places[i].cell == places[i - 1].cell) continue;
    rename.bind(1, '"' + places[i].key + '"');
    rename.bind(2, '"' + key_on(places[i].key, places[i].machine) + '"');
    rename.exec();
    rename.reset();
  }
  database.exec("DELETE FROM cell WHERE threads > 0 AND machine = '' AND id NOT IN (SELECT cell FROM replicate)");
}

// A verdict knows what was expected of it, and what made it can be made again.
void add_reproductions(SQLite::Database& database) {
  database.exec(R"sql(
    ALTER TABLE verdict ADD COLUMN region TEXT NOT NULL DEFAULT '';
    ALTER TABLE verdict ADD COLUMN expected TEXT NOT NULL DEFAULT 'AMBIGUOUS';
    ALTER TABLE verdict ADD COLUMN source TEXT NOT NULL DEFAULT '';
    CREATE TABLE reproduction(
      recipe TEXT PRIMARY KEY, size TEXT NOT NULL, command TEXT NOT NULL, seconds REAL NOT NULL, cells TEXT NOT NULL,
      written TEXT NOT NULL);
    INSERT INTO reproduction SELECT recipe, '', '', 0, '[]', max(written) FROM verdict GROUP BY recipe)sql");
}

// A verdict carries its statement as data, and every comparison that it rests on.
void add_statements(SQLite::Database& database) {
  database.exec(R"sql(
    ALTER TABLE verdict ADD COLUMN quotation TEXT NOT NULL DEFAULT '';
    ALTER TABLE verdict ADD COLUMN paraphrase TEXT NOT NULL DEFAULT '';
    ALTER TABLE verdict ADD COLUMN definition TEXT NOT NULL DEFAULT '';
    ALTER TABLE verdict ADD COLUMN threshold TEXT NOT NULL DEFAULT '';
    ALTER TABLE verdict ADD COLUMN because TEXT NOT NULL DEFAULT '';
    ALTER TABLE verdict ADD COLUMN compared TEXT NOT NULL DEFAULT '[]')sql");
}

// What each schema has beyond the one before it, from 2 on: a new file takes all of it, an older file what it lacks.
constexpr std::array additions{add_verdicts, add_machines_and_counts, add_reproductions, add_statements};
constexpr std::int64_t schema_version = additions.size() + 1;

}  // namespace

void require_our_schema(const std::filesystem::path& path, std::int64_t application, std::int64_t version) {
  if (application != application_id)
    throw Misuse(
        fmt::format("'{}' is an SQLite database of another program; expected a results file of attnbench; it "
                    "is left untouched: give another path",
                    path.string()));
  if (version < 1 || version > schema_version)
    throw Misuse(
        fmt::format("'{}' has results schema {}; this attnbench knows schemas 1 to {}; {}, or give another path",
                    path.string(), version, schema_version,
                    version > schema_version ? "use the newer attnbench that wrote it" : "it may be damaged"));
}

// The schema is one transaction in rollback mode, so that the file's header names us before a log can exist, and two
// runs that start together agree on who creates it.
void create_or_update_schema(const std::filesystem::path& path, SQLite::Database& database) {
  SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
  const bool empty = database.execAndGet("SELECT count(*) FROM sqlite_master").getInt() == 0;
  const std::int64_t application = database.execAndGet("PRAGMA application_id").getInt64();
  std::int64_t version = 1;
  if (empty && application == 0) {
    database.exec(first_schema);
    database.exec(fmt::format("PRAGMA application_id = {}", application_id));
  } else {
    version = database.execAndGet("PRAGMA user_version").getInt64();
    require_our_schema(path, application, version);
  }
  for (; version < schema_version; ++version) {
    additions[static_cast<size_t>(version - 1)](database);
    database.exec(fmt::format("PRAGMA user_version = {}", version + 1));
  }
  transaction.commit();
}

bool is_older_schema(SQLite::Database& database) {
  return database.execAndGet("PRAGMA user_version").getInt64() < schema_version;
}

// A temporary view hides the table of the same name. Of an older file's timings nobody has noted the machine, and
// nobody said what its verdicts were expected to be.
void read_as_this_schema(SQLite::Database& database) {
  const std::int64_t version = database.execAndGet("PRAGMA user_version").getInt64();
  if (version < 3)
    database.exec(R"sql(
      CREATE TEMP VIEW cell AS SELECT *, '' AS machine FROM main.cell;
      CREATE TEMP VIEW replicate AS SELECT *, (SELECT count(*) FROM main.measurement m
        WHERE m.cell = r.cell AND m.replicate = r.replicate) AS measurements FROM main.replicate r)sql");
  if (version < 4)
    database.exec(
        fmt::format("CREATE TEMP VIEW verdict AS SELECT recipe, position, outcome, statement, numbers, '' AS region, "
                    "'AMBIGUOUS' AS expected, '' AS source FROM {}",
                    version > 1 ? "main.verdict"
                                : "(SELECT '' AS recipe, 0 AS position, '' AS outcome, '' AS statement, '' AS numbers) "
                                  "WHERE false"));
}

std::string key_on(const std::string& key, const std::string& machine) {
  return fmt::format("{}-{:016x}", key, hash_bytes(machine));
}

}  // namespace attnbench
