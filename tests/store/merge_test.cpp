// Merging: statistics of one cell unite, machines and sources stay apart, nothing is lost, counted twice or half
// written.
#include "harness/store/merge.hpp"

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Database.h>

#include <algorithm>
#include <vector>

#include "harness/store/database.hpp"
#include "harness/store/digest.hpp"
#include "harness/store/store.hpp"
#include "harness/store/verify.hpp"
#include "tests/catch.hpp"
#include "tests/misuse.hpp"
#include "tests/store/results_file.hpp"

namespace attnbench::merge_test {
namespace fs = std::filesystem;

namespace {

// A results file with these replicates of one cell: error = 10 * replicate, and an array.
fs::path part(const fs::path& path, const CellRow& row, std::initializer_list<Index> replicates, double scale = 10) {
  Store store(path);
  const auto run = store.begin_run("attnbench run " + path.filename().string(), "{}");
  for (const Index replicate : replicates)
    store.record(run, row, replicate, {}, 1,
                 {scalar("error", scale * static_cast<double>(replicate)), {"rows", "1", {2}, {1, 2}}});
  return path;
}

CellRow timed(const std::string& machine) {
  CellRow row = cell("softmax");
  row.threads = 2;
  row.machine = machine;
  row.key = key_on(row.key, machine);
  return row;
}

std::string exported(const fs::path& path) { return csv(Store::open_existing(path)); }

size_t files_beside(const fs::path& path) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(path.parent_path()), {}));
}

}  // namespace

TEST_CASE("replicates of one cell unite, whatever the order of the files", "[unit]") {
  const Folder folder;
  std::vector<fs::path> files{part(folder / "1.db", cell("uniform"), {0, 1}),
                              part(folder / "2.db", cell("uniform"), {2}), part(folder / "3.db", cell("zero"), {0, 1})};
  const std::string whole = [&] {
    part(folder / "whole.db", cell("uniform"), {0, 1, 2});
    return exported(part(folder / "whole.db", cell("zero"), {0, 1}));
  }();
  const size_t before = files_beside(files[0]);
  int order = 0;
  do {
    const fs::path out = folder / ("out" + std::to_string(order++) + ".db");
    const Merged merged = merge(out, files);
    CHECK(exported(out) == whole);
    CHECK(merged.cells == 2);
    CHECK(merged.replicates == 5);
    CHECK(merged.added == 5);
    CHECK(verify(out).problems.empty());
  } while (std::next_permutation(files.begin(), files.end()));
  CHECK(order == 6);
  CHECK(files_beside(files[0]) == before + 6);  // no temporary file stays
}

TEST_CASE("merging twice changes nothing", "[unit]") {
  const Folder folder;
  const std::vector<fs::path> files{part(folder / "1.db", cell("uniform"), {0, 1}),
                                    part(folder / "2.db", cell("uniform"), {1, 2})};
  const fs::path out = folder / "out.db";
  merge(out, files);
  const std::string once = csv(Store::open_existing(out), true);
  CHECK(merge(out, files).added == 0);
  CHECK(csv(Store::open_existing(out), true) == once);
  CHECK(merge(out, {files[1], out, files[0], files[0]}).added == 0);
  CHECK(csv(Store::open_existing(out), true) == once);
  CHECK(merge(folder / "again.db", {out, files[0], out}).added == 3);
  CHECK(exported(folder / "again.db") == exported(out));
  SQLite::Database reader(out.string());
  CHECK(reader.execAndGet("SELECT count(*) FROM run").getInt() == 2);
}

TEST_CASE("what the file to write already holds stays in it, whether it is named as an input or not", "[unit]") {
  const Folder folder;
  const fs::path one = part(folder / "1.db", cell("uniform"), {0}), two = part(folder / "2.db", cell("zero"), {0});
  CHECK(merge(one, {two}).added == 1);
  CHECK(Store::open_existing(one).ended().size() == 2);
}

TEST_CASE("different numbers for one replicate are refused, and nothing is written", "[unit]") {
  const Folder folder;
  const fs::path one = part(folder / "1.db", cell("uniform"), {0, 1}),
                 two = part(folder / "2.db", cell("uniform"), {0, 1}, 20), out = folder / "out.db";
  const std::string before = bytes_of(one);
  const std::string message = misuse_of([&] { merge(out, {one, two}); });
  CHECK(contains(message, "kernel-error:draws=8 uniform gaussian n=64, replicate 1: error = 10 and 20"));
  CHECK(contains(message, "for 1 replicates"));
  CHECK_FALSE(fs::exists(out));
  misuse_of([&] { merge(one, {two}); });
  CHECK(bytes_of(one) == before);
  CHECK(files_beside(one) == 2);

  SECTION("arrays, units, missing metrics and endings count") {
    const auto differs = [&](std::vector<Measurement> measurements, const Ending& ending, const std::string& expected) {
      const fs::path other = folder / "other.db";
      fs::remove(other);
      {
        Store store(other);
        store.record(store.begin_run("a", "{}"), cell("uniform"), 1, ending, 1, measurements);
      }
      CHECK(contains(misuse_of([&] { merge(out, {one, other}); }), expected));
    };
    const Measurement rows{"rows", "1", {2}, {1, 2}};
    differs({scalar("error", 10), {"rows", "1", {2}, {1, 3}}}, {}, "rows, an array");
    differs({scalar("error", 10)}, {}, "rows, which only one of them has");
    differs({scalar("error", 10), rows, scalar("more", 1)}, {}, "more, which only one of them has");
    differs({{"error", "s", {}, {10}}, rows}, {}, "error = 10 and 10");
    differs({scalar("error", 10), rows}, {Ending::Kind::invalid, "overflow"}, "how it ended");
  }
}

TEST_CASE("of two tries the settled one stays, whatever the order", "[unit]") {
  const Folder folder;
  const fs::path done = part(folder / "done.db", cell("uniform"), {0}), crashed = folder / "crashed.db";
  {
    Store store(crashed);
    store.record(store.begin_run("b", "{}"), cell("uniform"), 0, {Ending::Kind::crashed, "signal 11"}, 1, {});
  }
  merge(folder / "a.db", {done, crashed});
  merge(folder / "b.db", {crashed, done});
  CHECK(exported(folder / "a.db") == exported(done));
  CHECK(exported(folder / "b.db") == exported(done));
  CHECK(verify(folder / "b.db").problems.empty());
}

TEST_CASE("timings of different machines stay apart, and of one machine the earlier counts", "[unit]") {
  const Folder folder;
  const fs::path here = part(folder / "here.db", timed("here"), {0}, 1),
                 there = part(folder / "there.db", timed("there"), {0}, 2);
  const fs::path out = folder / "out.db";
  const Merged merged = merge(out, {here, there});
  CHECK(merged.cells == 2);
  CHECK(merged.timed_on_several_machines == 1);
  CHECK(merged.timed_twice == 0);
  const fs::path again = folder / "again.db";
  {
    Store store(again);
    store.record(store.begin_run("later", "{}"), timed("here"), 0, {}, 2, {scalar("error", 7)});
  }
  for (const auto& files : {std::vector{here, again}, std::vector{again, here}}) {
    fs::remove(out);
    CHECK(merge(out, files).timed_twice == 1);
    CHECK(exported(out) == exported(here));
  }
}

TEST_CASE("cells of one key that differ are refused, and nothing is written", "[unit]") {
  const Folder folder;
  CellRow other = cell("uniform");
  other.seed = 7;
  const fs::path one = part(folder / "1.db", cell("uniform"), {0}), two = part(folder / "2.db", other, {1});
  const std::string message = misuse_of([&] { merge(folder / "out.db", {one, two}); });
  CHECK(contains(message, "different cells under one key; the first: kernel-error:draws=8 uniform gaussian n=64"));
  CHECK_FALSE(fs::exists(folder / "out.db"));
}

TEST_CASE("cells of several source versions stay apart and are counted", "[unit]") {
  const Folder folder;
  CellRow newer = cell("uniform");
  newer.key += "/newer";
  newer.source_version = "fedcba9876543210";
  const Merged merged =
      merge(folder / "out.db", {part(folder / "1.db", cell("uniform"), {0}), part(folder / "2.db", newer, {0}, 3)});
  CHECK(merged.cells == 2);
  CHECK(merged.with_several_versions == 1);
  CHECK(merged.timed_on_several_machines == 0);
}

TEST_CASE("the newest figures and verdicts are kept, whatever the order", "[unit]") {
  const Folder folder;
  for (const auto& [name, year, outcome] :
       {std::tuple{"old.db", "2025", Ruling::refuted}, {"new.db", "2026", Ruling::holds}}) {
    {
      Store store(folder / name);
      store.put_figure("r", "f", 0, std::string("{\"of\":") + year + "}");
      store.put_figure("r", year, 1, "{}");
      store.put_reproduction(
          {.recipe = "r", .verdicts = {{{"it holds"}, {outcome, year}}, {{"as well"}, {outcome, year}}}});
    }
    SQLite::Database database = open_for_writing(folder / name);
    database.exec(std::string("UPDATE figure SET written = '") + year + "'; UPDATE reproduction SET written = '" +
                  year + "'");
    for (const char* table : {"figure", "reproduction"}) database.exec(seal(table, "true"));
  }
  for (const auto& files :
       {std::vector<fs::path>{folder / "old.db", folder / "new.db"}, {folder / "new.db", folder / "old.db"}}) {
    fs::remove(folder / "out.db");
    merge(folder / "out.db", files);
    SQLite::Database reader(folder / "out.db");
    CHECK(reader.execAndGet("SELECT json FROM figure WHERE name = 'f'").getString() == "{\"of\":2026}");
    CHECK(reader.execAndGet("SELECT count(*) FROM figure").getInt() == 3);
    CHECK(reader.execAndGet("SELECT group_concat(outcome || numbers) FROM verdict").getString() ==
          "HOLDS2026,HOLDS2026");
    CHECK(verify(folder / "out.db").problems.empty());
  }
}

TEST_CASE("what cannot be merged is a misuse and leaves nothing behind", "[unit]") {
  const Folder folder;
  const fs::path one = part(folder / "1.db", cell("uniform"), {0}), out = folder / "out.db";
  CHECK(contains(misuse_of([&] { merge(out, {one, folder / "absent.db"}); }), "absent.db"));
  overwrite(folder / "text.db", "no database");
  CHECK(contains(misuse_of([&] { merge(out, {one, folder / "text.db"}); }), "text.db"));
  CHECK(contains(misuse_of([&] { merge(folder / "text.db", {one}); }), "text.db"));
  CHECK(bytes_of(folder / "text.db") == "no database");
  CHECK_FALSE(fs::exists(out));
  CHECK(files_beside(one) == 2);
}

}  // namespace attnbench::merge_test
