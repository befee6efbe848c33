// Results files that another program has changed: every command refuses them in one line, and runs nothing in them.
#include <SQLiteCpp/Database.h>
#include <fmt/format.h>

#include <functional>
#include <tuple>
#include <vector>

#include "harness/store/merge.hpp"
#include "harness/store/store.hpp"
#include "harness/store/verify.hpp"
#include "tests/catch.hpp"
#include "tests/misuse.hpp"
#include "tests/store/results_file.hpp"

namespace attnbench::foreign_test {
namespace fs = std::filesystem;

namespace {

fs::path written(const fs::path& path) {
  Store store(path);
  store.record(store.begin_run("a", "{}"), cell("uniform"), 0, {}, 1,
               {scalar("error", 1), {"rows", "1", {2, 2}, {1, 2, 3, 4}}});
  return path;
}

void change(const fs::path& path, const std::string& sql) {
  SQLite::Database(path.string(), SQLite::OPEN_READWRITE).exec(sql);
}

// Each opening of the file, with the message that it gave.
std::vector<std::string> refusals(const fs::path& path, const fs::path& intact) {
  return {misuse_of([&] { const Store store(path); }), misuse_of([&] { Store::open_existing(path); }),
          misuse_of([&] { merge(path.string() + ".out", {path}); }), misuse_of([&] { merge(path, {intact}); })};
}

}  // namespace

TEST_CASE("a file with other tables than ours is refused in one line by every command, and stays as it is", "[unit]") {
  const Folder folder;
  const fs::path path = written(folder / "results.db"), intact = written(folder / "intact.db");
  const auto [sql, expected] = GENERATE(
      std::tuple("CREATE TRIGGER t AFTER INSERT ON replicate BEGIN DELETE FROM measurement; END",
                 "it has a foreign trigger"),
      std::tuple(
          "CREATE TRIGGER t AFTER INSERT ON run BEGIN INSERT INTO figure WITH RECURSIVE i(x) AS (SELECT 1 UNION ALL "
          "SELECT x + 1 FROM i) SELECT x, x, x, x, x, x FROM i; END",
          "it has a foreign trigger"),
      std::tuple("ALTER TABLE measurement RENAME TO kept; CREATE VIEW measurement AS SELECT * FROM kept",
                 "it has a foreign view in place of the table measurement"),
      std::tuple(
          "DROP TABLE figure; CREATE VIEW figure AS WITH RECURSIVE i(recipe) AS (SELECT 1 UNION ALL SELECT recipe + 1 "
          "FROM i) SELECT * FROM i",
          "it has a foreign view in place of the table figure"),
      std::tuple("CREATE VIEW mine AS SELECT * FROM cell", "it has a foreign view"),
      std::tuple("CREATE TABLE mine(x)", "it has a foreign table"),
      std::tuple("CREATE INDEX mine ON cell(method)", "it has a foreign index"),
      std::tuple("DROP TABLE verdict", "its table verdict is missing"),
      std::tuple("ALTER TABLE cell DROP COLUMN seed", "its table cell has no column seed"),
      std::tuple("ALTER TABLE cell RENAME COLUMN seed TO sod", "its table cell has no column seed"),
      std::tuple("ALTER TABLE run ADD COLUMN mine TEXT", "its table run has 6 columns instead of 5"),
      std::tuple("ALTER TABLE run ADD COLUMN mine TEXT AS (started)", "its table run has 6 columns instead of 5"),
      std::tuple("PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = replace(sql, 'TEXT NOT NULL', 'TEXT') "
                 "WHERE name = 'cell'",
                 "its table cell has columns of other types or constraints"));
  CAPTURE(sql);
  change(path, sql);
  const std::string before = bytes_of(path);
  std::vector<std::string> lines = refusals(path, intact);
  lines.push_back(misuse_of([&] { verify(path); }));
  for (const std::string& line : lines) {
    CHECK(contains(line, expected));
    CHECK(contains(line, "expected the tables of schema"));
    CHECK_FALSE(contains(line, "\n"));
  }
  CHECK(bytes_of(path) == before);
}

TEST_CASE("a file whose texts are UTF-16 is refused", "[unit]") {
  const Folder folder;
  const fs::path path = written(folder / "results.db");
  std::string bytes = bytes_of(path);
  bytes[59] = 2;  // https://sqlite.org/fileformat.html, 1.3.13
  overwrite(path, bytes);
  for (const std::string& line : refusals(path, written(folder / "intact.db")))
    CHECK(contains(line, "in UTF-16; expected UTF-8"));
}

TEST_CASE("values that attnbench does not write are refused in one line when the file is opened", "[unit]") {
  const Folder folder;
  const fs::path path = written(folder / "results.db"), intact = written(folder / "intact.db");
  const auto [sql, expected] = GENERATE(
      std::tuple("UPDATE cell SET method = CAST(x'75ff' AS TEXT)", "cell.method: 1 values"),
      std::tuple("UPDATE replicate SET reason = CAST(x'610062' AS TEXT)", "replicate.reason: 1 values"),
      std::tuple("UPDATE measurement SET unit = x'31'", "measurement.unit: 2 values"),
      std::tuple("UPDATE cell SET n = 'many'", "cell.n: 1 values"),
      std::tuple("UPDATE replicate SET seconds = 'long'", "replicate.seconds: 1 values"),
      std::tuple("UPDATE measurement SET array = '12345678901234567890123456789012' WHERE metric = 'rows'",
                 "measurement.array: 1 values"),
      std::tuple("UPDATE measurement SET array = zeroblob(24) WHERE metric = 'rows'",
                 "1 arrays do not fit their shapes"),
      std::tuple("UPDATE measurement SET shape = '[4611686018427387904,4]' WHERE metric = 'rows'",
                 "1 arrays do not fit their shapes"),
      std::tuple("UPDATE replicate SET ending = 'ex' || char(10) || 'ploded'", "no replicate ends as 'ex?ploded'"));
  CAPTURE(sql);
  change(path, sql);
  const std::string before = bytes_of(path);
  for (const std::string& line : refusals(path, intact)) {
    CHECK(contains(line, "is damaged or was altered"));
    CHECK_FALSE(contains(line, "\n"));
  }
  CHECK(contains(refusals(path, intact)[0], expected));
  CHECK(bytes_of(path) == before);
  const Verification found = verify(path);
  CHECK_FALSE(found.problems.empty());
  for (const std::string& problem : found.problems) CHECK_FALSE(contains(problem, "\n"));
}

}  // namespace attnbench::foreign_test
