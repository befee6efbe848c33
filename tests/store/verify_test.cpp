// Verification: a whole file passes, and every kind of loss is seen.
#include "harness/store/verify.hpp"

#include <SQLiteCpp/Database.h>

#include <cmath>
#include <tuple>

#include "harness/store/merge.hpp"
#include "harness/store/store.hpp"
#include "tests/catch.hpp"
#include "tests/misuse.hpp"
#include "tests/store/results_file.hpp"

namespace attnbench::verify_test {
namespace fs = std::filesystem;

namespace {

fs::path example(const fs::path& path) {
  Store store(path);
  const auto run = store.begin_run("a", "{}");
  for (Index i = 0; i < 3; ++i)
    store.record(run, cell("uniform"), i, {}, 1, {scalar("error", 1), {"rows", "1", {2, 2}, {1, 2, 3, 4}}});
  store.record(run, cell("zero"), 0, {Ending::Kind::skipped, "no causal form"}, 1, {});
  return path;
}

}  // namespace

TEST_CASE("a whole file has no problem, and is counted", "[unit]") {
  const Folder folder;
  const Verification found = verify(example(folder / "results.db"));
  CHECK(found.problems.empty());
  CHECK(found.remarks.empty());
  CHECK(found.runs == 1);
  CHECK(found.cells == 2);
  CHECK(found.replicates == 4);
  CHECK(found.measurements == 6);
  CHECK(found.endings == std::map<std::string, Index>{{"done", 3}, {"skipped", 1}});
}

TEST_CASE("every kind of loss is found", "[unit]") {
  const Folder folder;
  const fs::path path = example(folder / "results.db");
  std::string change, expected;
  SECTION("a measurement") {
    change = "DELETE FROM measurement WHERE cell = 1 AND replicate = 1 AND metric = 'rows'";
    expected = "uniform gaussian n=64 replicate 1: 1 of 2";
  }
  SECTION("all of a replicate") {
    change =
        "DELETE FROM measurement WHERE cell = 1 AND replicate = 1; UPDATE replicate SET measurements = 0 WHERE "
        "cell = 1 AND replicate = 1";
    expected = "done without a measurement: kernel-error:draws=8 uniform";
  }
  SECTION("a replicate") {
    change = "DELETE FROM replicate WHERE cell = 1 AND replicate = 1";
    expected = "measurement refers to a replicate that is not there";
  }
  SECTION("all replicates of a cell") {
    change = "DELETE FROM replicate WHERE cell = 2";
    expected = "a cell without a replicate: kernel-error:draws=8 zero";
  }
  SECTION("a run") {
    change = "DELETE FROM run";
    expected = "replicate refers to a run that is not there";
  }
  SECTION("a reason") {
    change = "UPDATE replicate SET reason = '' WHERE cell = 2";
    expected = "zero gaussian n=64 replicate 0: skipped";
  }
  SECTION("an ending") {
    change = "UPDATE replicate SET ending = 'exploded' WHERE cell = 2";
    expected = "no replicate ends as 'exploded'";
  }
  SECTION("bytes of an array") {
    change = "UPDATE measurement SET array = substr(array, 1, 24) WHERE replicate = 2 AND metric = 'rows'";
    expected = "replicate 2: has 24 bytes; its shape [2,2] needs 32";
  }
  SECTION("a number of an array") {
    change =
        "UPDATE measurement SET array = substr(array, 1, 24) || x'000000000000f87f' WHERE replicate = 2 AND "
        "metric = 'rows'";
    expected = "has a NaN at place 3";
  }
  SECTION("a shape") {
    change = "UPDATE measurement SET shape = '2,2' WHERE replicate = 2 AND metric = 'rows'";
    expected = "its shape '2,2' is not a list of sizes";
  }
  SECTION("a scalar's shape") {
    change = "UPDATE measurement SET shape = '[3]' WHERE metric = 'error'";
    expected = "error [3]";
  }
  SQLite::Database(path.string(), SQLite::OPEN_READWRITE).exec(change);
  CHECK(misuse_of([&] { merge(folder / "out.db", {path}); }).find('\n') == std::string::npos);
  const Verification found = verify(path);
  REQUIRE_FALSE(found.problems.empty());
  bool named = false;
  for (const auto& problem : found.problems) named |= contains(problem, expected);
  INFO(found.problems[0]);
  CHECK(named);
}

// No other rule sees these: only the digests.
TEST_CASE("every altered value is found, by its place", "[unit]") {
  const Folder folder;
  const fs::path path = example(folder / "results.db");
  {
    Store store(path);
    store.put_figure("r", "f", 0, "{}");
    store.put_reproduction({.recipe = "r",
                            .size = "quick",
                            .command = "attnbench reproduce r",
                            .cells = {"k"},
                            .verdicts = {{{"it holds"}, {Ruling::refuted, "1"}}, {{"as well"}, {Ruling::holds, "2"}}}});
  }
  const std::string uniform = "altered: kernel-error:draws=8 uniform gaussian n=64 replicate ";
  const auto [change, place] = GENERATE_COPY(
      std::tuple("UPDATE measurement SET value = 1 + 1e-15 WHERE replicate = 1 AND metric = 'error'", uniform + "1"),
      std::tuple("UPDATE measurement SET array = x'01' || substr(array, 2) WHERE replicate = 2 AND metric = 'rows'",
                 uniform + "2"),
      std::tuple("UPDATE measurement SET unit = 's' WHERE replicate = 1 AND metric = 'error'", uniform + "1"),
      std::tuple("UPDATE measurement SET metric = 'errors' WHERE replicate = 1 AND metric = 'error'", uniform + "1"),
      std::tuple("UPDATE measurement SET shape = '[4]' WHERE replicate = 1 AND metric = 'rows'", uniform + "1"),
      std::tuple("UPDATE replicate SET reason = 'no time' WHERE cell = 2",
                 std::string("altered: kernel-error:draws=8 zero gaussian n=64 replicate 0")),
      std::tuple("UPDATE replicate SET ending = 'invalid' WHERE cell = 2",
                 std::string("altered: kernel-error:draws=8 zero gaussian n=64 replicate 0")),
      std::tuple("UPDATE replicate SET seconds = 2 WHERE cell = 1 AND replicate = 0", uniform + "0"),
      std::tuple("UPDATE replicate SET finished = '2020' WHERE cell = 1 AND replicate = 0", uniform + "0"),
      // A replicate moves with its measurements, to another number and to another cell.
      std::tuple("UPDATE replicate SET replicate = replicate + 9 WHERE cell = 1 AND replicate = 1; "
                 "UPDATE measurement SET replicate = replicate + 9 WHERE cell = 1 AND replicate = 1",
                 uniform + "10"),
      std::tuple("UPDATE replicate SET cell = 2 WHERE cell = 1 AND replicate = 1; "
                 "UPDATE measurement SET cell = 2 WHERE cell = 1 AND replicate = 1",
                 std::string("altered: kernel-error:draws=8 zero gaussian n=64 replicate 1")),
      std::tuple("UPDATE cell SET method = 'softmax' WHERE id = 1",
                 std::string("altered: kernel-error:draws=8 softmax gaussian n=64 replicate 0")),
      std::tuple("UPDATE cell SET n = 65 WHERE id = 1",
                 std::string("altered: kernel-error:draws=8 uniform gaussian n=65 replicate 0")),
      std::tuple("UPDATE cell SET seed = '1' WHERE id = 1", uniform + "0"),
      std::tuple("UPDATE cell SET key = 'k' WHERE id = 1", uniform + "0"),
      std::tuple("UPDATE cell SET parameters = '{}' WHERE id = 1", uniform + "0"),
      std::tuple("UPDATE cell SET source_version = '0' WHERE id = 1", uniform + "0"),
      std::tuple("UPDATE cell SET machine = 'there' WHERE id = 1", uniform + "0"),
      std::tuple("UPDATE run SET environment = '{\"a\":1}'", std::string("altered: run 1")),
      std::tuple("UPDATE run SET command = 'b'", std::string("altered: run 1")),
      std::tuple("UPDATE run SET digest = ''", uniform + "0"),
      std::tuple("INSERT INTO run SELECT 2, started, 'b', environment, 'c' FROM run; UPDATE replicate SET run = 2 "
                 "WHERE cell = 1",
                 uniform + "0"),
      std::tuple("UPDATE figure SET json = '[]'", std::string("altered: figure r/f")),
      std::tuple("UPDATE verdict SET outcome = 'HOLDS' WHERE position = 0",
                 std::string("altered: recipe r, or one of its verdicts")),
      std::tuple("DELETE FROM verdict WHERE position = 1", std::string("altered: recipe r, or one of its verdicts")),
      std::tuple("UPDATE reproduction SET size = 'full'", std::string("altered: recipe r, or one of its verdicts")),
      std::tuple("DELETE FROM reproduction", std::string("a verdict of a recipe that is not there: r")));
  CAPTURE(change);
  CHECK(verify(path).problems.empty());
  SQLite::Database(path.string(), SQLite::OPEN_READWRITE).exec(change);
  std::string problems;
  for (const std::string& problem : verify(path).problems) problems += problem + "\n";
  CHECK(contains(problems, place + "\n"));
  const std::string before = bytes_of(path);
  for (const std::string& line : {misuse_of([&] { merge(folder / "out.db", {path}); }),
                                  misuse_of([&] { merge(path, {example(folder / "intact.db")}); })}) {
    CHECK(contains(line, "is damaged or was altered"));
    CHECK_FALSE(contains(line, "\n"));
  }
  CHECK(bytes_of(path) == before);
}

TEST_CASE("a flipped bit is found, or it is in bytes that no row uses", "[unit]") {
  const Folder folder;
  const fs::path whole = example(folder / "whole.db"), flipped = folder / "flipped.db";
  const std::string bytes = bytes_of(whole), rows = csv(Store::open_existing(whole), true);
  int found = 0;
  for (size_t at = 100; at < bytes.size(); at += 61) {
    CAPTURE(at);
    std::string other = bytes;
    other[at] = static_cast<char>(other[at] ^ (1 << at % 8));
    overwrite(flipped, other);
    try {
      if (verify(flipped).problems.empty())
        CHECK(csv(Store::open_existing(flipped), true) == rows);
      else
        ++found;
    } catch (const Misuse&) {
      ++found;
    }
  }
  CHECK(found > 20);  // or no bit was in a row
}

TEST_CASE("damaged bytes are a problem, and no results file is a misuse", "[unit]") {
  const Folder folder;
  const fs::path path = example(folder / "results.db");
  std::string bytes = bytes_of(path);
  for (size_t at = 4 * 4096; at < 5 * 4096; ++at) bytes[at] = '\xff';
  overwrite(path, bytes);
  CHECK_FALSE(verify(path).problems.empty());
  overwrite(path, bytes.substr(0, 4096 + 17));
  CHECK_FALSE(verify(path).problems.empty());
  overwrite(path, "text");
  CHECK(contains(misuse_of([&] { verify(path); }), "is not a results file"));
  CHECK(contains(misuse_of([&] { verify(folder / "absent.db"); }), "absent.db"));
}

TEST_CASE("replicates of one cell with different metrics are remarked on", "[unit]") {
  const Folder folder;
  const fs::path path = example(folder / "results.db");
  {
    Store store(path);
    store.record(store.begin_run("b", "{}"), cell("uniform"), 9, {}, 1, {scalar("error", 1)});
  }
  const Verification found = verify(path);
  CHECK(found.problems.empty());
  REQUIRE(found.remarks.size() == 1);
  CHECK(contains(found.remarks[0], "rows in 3 of 4 replicates"));
}

}  // namespace attnbench::verify_test
