// The results file: recorded rows come back, once; any other file stays as it is; exports do not depend on the order of
// running.
#include "harness/store/store.hpp"

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Transaction.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "harness/core/file_bytes.hpp"
#include "harness/core/installed.hpp"
#include "harness/errors/error.hpp"
#include "harness/machine/instruction_level.hpp"
#include "harness/machine/resources.hpp"
#include "harness/store/database.hpp"
#include "harness/store/environment.hpp"
#include "harness/store/merge.hpp"
#include "tests/catch.hpp"
#include "tests/misuse.hpp"
#include "tests/store/results_file.hpp"

namespace attnbench::store_test {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

json parsed(const Store& store, bool clock = false) {
  std::ostringstream out;
  store.export_table(out, {.format = ExportRequest::Format::json, .arrays = true, .clock = clock});
  return json::parse(out.str());
}

std::string refusal(const fs::path& path) {
  return misuse_of([&] { const Store store(path); });
}

const std::string values_of_cell = R"(kernel-error:draws=8,uniform,gaussian,64,64,16,16,1,0,-1,f64,2,0.5,)"
                                   "18446744073709551615,0,,256";

}  // namespace

TEST_CASE("what is recorded comes back with every column", "[unit]") {
  const Folder folder;
  Store store(folder / "results.db");
  const auto run = store.begin_run("attnbench run kernel-error", "{}");
  store.record(run, cell("uniform"), 3, {}, 0.25, {scalar("error", 0.1), {"spectrum", "s", {2}, {1.5, infinity}}});
  CHECK(csv(store) ==
        "experiment,method,input,nq,n,d,dv,causal,mask_offset,mask_keys,precision,heads,logit_scale,seed,threads,"
        "machine,m,replicate,ending,reason,metric,unit,index,value\n" +
            values_of_cell + ",3,done,,error,1,,0.1\n" + values_of_cell + ",3,done,,spectrum,s,0,1.5\n" +
            values_of_cell + ",3,done,,spectrum,s,1,inf\n");
}

TEST_CASE("results survive closing and opening", "[unit]") {
  const Folder folder;
  std::string before;
  {
    Store store(folder / "results.db");
    store.record(store.begin_run("a", "{}"), cell("uniform"), 0, {}, 1, {scalar("error", 1)});
    before = csv(store, true);
  }
  CHECK_FALSE(fs::exists(folder / "results.db-wal"));
  CHECK(csv(Store(folder / "results.db"), true) == before);
  CHECK(csv(Store::open_existing(folder / "results.db"), true) == before);
}

TEST_CASE("numbers read back as the doubles that were recorded", "[unit]") {
  const Folder folder;
  Store store(folder / "results.db");
  const std::vector<double> values = {
      0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, -2.5, 1e20, 123456789012345678.0, -infinity, infinity};
  const auto run = store.begin_run("a", "{}");
  for (size_t i = 0; i < values.size(); ++i)
    store.record(run, cell("uniform"), static_cast<Index>(i), {}, 1, {scalar("value", values[i])});
  std::istringstream lines(csv(store));
  std::string line;
  std::getline(lines, line);
  for (const double value : values) {
    REQUIRE(std::getline(lines, line));
    CHECK(std::strtod(line.substr(line.rfind(',') + 1).c_str(), nullptr) == value);
  }
}

TEST_CASE("recording a replicate twice keeps the first", "[unit]") {
  const Folder folder;
  Store store(folder / "results.db");
  const auto run = store.begin_run("a", "{}");
  store.record(run, cell("uniform"), 0, {}, 1, {scalar("error", 1)});
  const std::string once = csv(store, true);
  store.record(run, cell("uniform"), 0, {Ending::Kind::failed, "later"}, 2, {scalar("error", 2), scalar("other", 3)});
  CHECK(csv(store, true) == once);
}

TEST_CASE("a resumed run knows every replicate that ended in any way", "[unit]") {
  const Folder folder;
  {
    Store store(folder / "results.db");
    const auto run = store.begin_run("a", "{}");
    store.record(run, cell("uniform"), 0, {}, 1, {scalar("error", 1)});
    store.record(run, cell("uniform"), 7, {Ending::Kind::timed_out, "over 60 s"}, 60, {});
    store.record(run, cell("zero"), 1, {}, 1, {});
  }
  const Store store(folder / "results.db");
  CHECK(store.ended_replicates(cell("uniform").key) == std::unordered_set<Index>{0, 7});
  CHECK(store.ended_replicates(cell("identity").key).empty());
}

TEST_CASE("what has ended is known of all cells at once", "[unit]") {
  const Folder folder;
  using Kind = Ending::Kind;
  {
    Store store(folder / "results.db");
    CHECK(store.ended().empty());
    const auto run = store.begin_run("a", "{}");
    store.record(run, cell("zero"), 1, {Kind::skipped, "no"}, 1, {});
    store.record(run, cell("uniform"), 7, {Kind::timed_out, "over 60 s"}, 60, {});
    store.record(run, cell("uniform"), 0, {}, 1, {scalar("error", 1)});
  }
  const std::unordered_map<std::string, std::map<Index, Kind>> expected{
      {cell("zero").key, {{1, Kind::skipped}}}, {cell("uniform").key, {{0, Kind::done}, {7, Kind::timed_out}}}};
  CHECK(Store::open_existing(folder / "results.db").ended() == expected);
}

TEST_CASE("another try replaces what failed, crashed, timed out or ran out of memory, and nothing else", "[unit]") {
  const Folder folder;
  Store store(folder / "results.db");
  using Kind = Ending::Kind;
  for (const Kind kind :
       {Kind::done, Kind::skipped, Kind::failed, Kind::crashed, Kind::timed_out, Kind::out_of_memory, Kind::invalid}) {
    const CellRow row = cell(to_string(kind));
    CHECK(ending_kind(to_string(kind)) == kind);
    store.record(store.begin_run("first", "{}"), row, 0, {kind, "first"}, 1, {scalar("old", 1), scalar("error", 1)});
    store.record(store.begin_run("again", "{}"), row, 0, {}, 2, {scalar("error", 2)});
    const auto error = store.scalars(row.key, "error"), old = store.scalars(row.key, "old");
    if (settled(kind)) {
      CHECK(store.ended().at(row.key).at(0) == kind);
      CHECK(error.size() == (kind == Kind::done ? 1 : 0));
      CHECK(old.size() == error.size());
    } else {
      CHECK(error == std::map<Index, double>{{0, 2}});
      CHECK(old.empty());
      CHECK(store.ended().at(row.key).at(0) == Kind::done);
    }
  }
  CHECK_THROWS_AS(ending_kind("exploded"), std::invalid_argument);
  CHECK(contains(csv(store, true), ",done,,error,1,,2,2,"));
}

TEST_CASE("every ending is a line with its reason", "[unit]") {
  const Folder folder;
  Store store(folder / "results.db");
  const auto run = store.begin_run("a", "{}");
  using Kind = Ending::Kind;
  Index replicate = 0;
  for (const Kind kind :
       {Kind::done, Kind::skipped, Kind::failed, Kind::crashed, Kind::timed_out, Kind::out_of_memory, Kind::invalid})
    store.record(run, cell("uniform"), replicate++, {kind, "because"}, 1, {});
  const json rows = parsed(store);
  std::vector<std::string> endings;
  for (const json& row : rows) {
    endings.push_back(row.at("ending"));
    CHECK(row.at("reason") == "because");
    for (const char* empty : {"metric", "unit", "index", "value"}) CHECK(row.at(empty).is_null());
  }
  CHECK(endings ==
        std::vector<std::string>{"done", "skipped", "failed", "crashed", "timed out", "out of memory", "invalid"});
  CHECK(contains(csv(store), values_of_cell + ",5,out of memory,because,,,,\n"));
}

TEST_CASE("four threads and a second connection record side by side", "[unit]") {
  const Folder folder;
  Store store(folder / "results.db"), other(folder / "results.db");
  const auto run = store.begin_run("a", "{}");
  constexpr Index replicates = 50;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (Index i = 0; i < replicates; ++i)
        (t % 2 ? store : other)
            .record(run, cell("method" + std::to_string(t)), i, {}, 1,
                    {scalar("error", 1), {"array", "1", {8}, std::vector<double>(8)}});
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(parsed(store).size() == 4 * replicates * 9);
  CHECK(parsed(other) == parsed(store));
}

TEST_CASE("runs that start together agree on who creates the file", "[unit]") {
  const Folder folder;
  for (int round = 0; round < 10; ++round) {
    const fs::path path = folder / ("together" + std::to_string(round));
    std::vector<std::thread> threads;
    std::vector<std::string> errors(4);
    for (size_t t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        try {
          Store store(path);
          store.record(store.begin_run("a", "{}"), cell("uniform"), static_cast<Index>(t), {}, 1, {});
        } catch (const std::exception& error) {
          errors[t] = error.what();
        }
      });
    for (std::thread& thread : threads) thread.join();
    CHECK(errors == std::vector<std::string>(4));
    CHECK(Store(path).ended_replicates(cell("uniform").key).size() == 4);
  }
}

TEST_CASE("a file that another run holds is a misuse after waiting", "[unit]") {
  const Folder folder;
  const fs::path path = folder / "results.db";
  const Store store(path);
  SQLite::Database holder(path.string(), SQLite::OPEN_READWRITE);
  const SQLite::Transaction transaction(holder, SQLite::TransactionBehavior::IMMEDIATE);
  const auto start = std::chrono::steady_clock::now();
  CHECK(contains(misuse_of([&] { open_for_recording(path, std::chrono::milliseconds(200)); }), "another run holds"));
  CHECK(std::chrono::steady_clock::now() - start >= std::chrono::milliseconds(200));
}

TEST_CASE("a reader is not held up by a writer and sees whole replicates", "[unit]") {
  const Folder folder;
  const fs::path path = folder / "results.db";
  Store store(path);
  store.record(store.begin_run("a", "{}"), cell("uniform"), 0, {}, 1, {scalar("error", 1)});
  SQLite::Database writer(path.string(), SQLite::OPEN_READWRITE);
  const SQLite::Transaction transaction(writer, SQLite::TransactionBehavior::IMMEDIATE);
  writer.exec("DELETE FROM measurement");
  CHECK(csv(Store::open_existing(path)) == csv(store));
}

TEST_CASE("opening for reading changes nothing, creates nothing and refuses to record", "[unit]") {
  const Folder folder;
  const fs::path path = folder / "results.db";
  { Store(path).begin_run("a", "{}"); }
  const std::string before = bytes_of(path);
  {
    Store reader = Store::open_existing(path);
    csv(reader);
    CHECK_THROWS_AS(reader.begin_run("b", "{}"), Misuse);
  }
  CHECK(bytes_of(path) == before);
  CHECK(std::distance(fs::directory_iterator(path.parent_path()), {}) == 1);
  CHECK(contains(misuse_of([&] { Store::open_existing(folder / "absent.db"); }), "there is no results file"));
  CHECK_FALSE(fs::exists(folder / "absent.db"));
}

TEST_CASE("a file that is no results file stays as it is, byte for byte", "[unit]") {
  const Folder folder;
  const fs::path path = folder / "foreign";
  std::string contents = "no database";
  SECTION("short text") {}
  SECTION("one byte") { contents = "S"; }
  SECTION("long text") { contents.assign(10000, 'x'); }
  SECTION("only the magic of SQLite") { contents = std::string("SQLite format 3\0", 16); }
  SECTION("the database of another program") {
    SQLite::Database(path.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE).exec("CREATE TABLE cell(x)");
    contents = bytes_of(path);
  }
  overwrite(path, contents);
  CHECK_THROWS_AS(Store(path), Misuse);
  CHECK_THROWS_AS(Store::open_existing(path), Misuse);
  CHECK(bytes_of(path) == contents);
  CHECK(std::distance(fs::directory_iterator(path.parent_path()), {}) == 1);
}

TEST_CASE("another program's database keeps the log that lies beside it", "[unit]") {
  const Folder folder;
  const fs::path path = folder / "other.db", copy = folder / "copy.db", log = folder / "copy.db-wal";
  SQLite::Database other(path.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  other.exec("PRAGMA journal_mode = WAL; CREATE TABLE t(x); INSERT INTO t VALUES(1)");
  const std::string file = bytes_of(path), file_log = bytes_of(folder / "other.db-wal");
  REQUIRE_FALSE(file_log.empty());
  overwrite(copy, file);
  overwrite(log, file_log);
  CHECK(contains(refusal(copy), "another program"));
  CHECK_THROWS_AS(Store::open_existing(copy), Misuse);
  CHECK(bytes_of(copy) == file);
  CHECK(bytes_of(log) == file_log);
}

TEST_CASE("a results file of another schema is refused in one line that says what to do, and stays as it is",
          "[unit]") {
  const Folder folder;
  const fs::path path = folder / "other.db";
  { const Store store(path); }
  for (const auto& [schema, advice] :
       {std::pair(10, "use the newer attnbench that wrote it"), std::pair(8, "use the older attnbench that wrote it"),
        std::pair(0, "it may be damaged")}) {
    SQLite::Database(path.string(), SQLite::OPEN_READWRITE).exec(fmt::format("PRAGMA user_version = {}", schema));
    const std::string before = bytes_of(path);
    for (const std::string& line : {refusal(path), misuse_of([&] { Store::open_existing(path); }),
                                    misuse_of([&] { merge(folder / "out.db", {path}); })}) {
      CHECK(contains(line, fmt::format("results schema {}", schema)));
      CHECK(contains(line, advice));
      CHECK_FALSE(contains(line, "\n"));
    }
    CHECK(bytes_of(path) == before);
  }
}

TEST_CASE("a results file cut off anywhere is never overwritten and loses nothing silently", "[unit]") {
  const Folder folder;
  const fs::path whole = folder / "whole.db", cut = folder / "cut.db";
  {
    Store store(whole);
    const auto run = store.begin_run("a", "{}");
    for (Index i = 0; i < 40; ++i)
      store.record(run, cell("uniform"), i, {}, 1,
                   {scalar("error", 1), {"array", "1", {700}, std::vector<double>(700, 0.5)}});
  }
  const std::string bytes = bytes_of(whole);
  // Every byte of the header and around every page's edge, and a prime's multiples between them.
  std::vector<size_t> lengths;
  for (size_t length = 1; length < bytes.size(); ++length)
    if (length <= 128 || length % 4096 <= 1 || length % 4096 == 4095 || length % 1009 == 0) lengths.push_back(length);
  for (const size_t length : lengths) {
    CAPTURE(length, bytes.size());
    const std::string part = bytes.substr(0, length);
    overwrite(cut, part);
    CHECK_THROWS_AS(Store(cut), Misuse);
    CHECK_THROWS_AS(Store::open_existing(cut), Misuse);
    CHECK(bytes_of(cut) == part);
  }
  CHECK(bytes.size() > 50 * 4096);
}

TEST_CASE("a killed run leaves whole replicates, and a damaged file keeps its log", "[unit]") {
  const Folder folder;
  const fs::path path = folder / "results.db", copy = folder / "copy.db";
  Store store(path);
  const auto run = store.begin_run("a", "{}");
  for (Index i = 0; i < 20; ++i)
    store.record(run, cell("uniform"), i, {}, 1, {{"array", "1", {500}, std::vector<double>(500)}});
  // A kill leaves what is on the disk before closing.
  const std::string file = bytes_of(path), log = bytes_of(folder / "results.db-wal");
  REQUIRE(log.size() > file.size());
  overwrite(copy, file);
  overwrite(folder / "copy.db-wal", log);

  SECTION("the log is taken over") { CHECK(csv(Store(copy)) == csv(store)); }
  SECTION("a log that is cut off gives up whole transactions") {
    for (size_t length = 0; length < log.size(); length += log.size() / 17) {
      overwrite(copy, file);
      overwrite(folder / "copy.db-wal", log.substr(0, length));
      const Store cut(copy);
      CHECK(parsed(cut).size() == 500 * cut.ended_replicates(cell("uniform").key).size());
    }
  }
  SECTION("an emptied file beside a log is refused, since SQLite would delete the log") {
    overwrite(copy, "");
    CHECK(contains(refusal(copy), "copy.db-wal"));
    CHECK(bytes_of(folder / "copy.db-wal") == log);
  }
  SECTION("a missing file beside a log is refused") {
    fs::remove(copy);
    CHECK(contains(refusal(copy), "copy.db-wal"));
    CHECK(bytes_of(folder / "copy.db-wal") == log);
    CHECK_FALSE(fs::exists(copy));
  }
}

TEST_CASE("damage is found although a log would cover some of it, and nothing is moved into the damaged file",
          "[unit]") {
  const Folder folder;
  const fs::path path = folder / "results.db", copy = folder / "copy.db";
  {
    Store first(path);
    const auto run = first.begin_run("a", "{}");
    for (Index i = 0; i < 40; ++i)
      first.record(run, cell("uniform"), i, {}, 1, {{"array", "1", {500}, std::vector<double>(500)}});
  }
  Store store(path);
  store.begin_run("b", "{}");
  std::string damaged = bytes_of(path);
  for (size_t at = 3 * 4096; at < damaged.size(); ++at) damaged[at] = '\xff';
  const std::string log = bytes_of(folder / "results.db-wal");
  REQUIRE_FALSE(log.empty());
  overwrite(copy, damaged);
  overwrite(folder / "copy.db-wal", log);
  CHECK(contains(refusal(copy), "corrupt"));
  CHECK(bytes_of(copy) == damaged);
  CHECK(bytes_of(folder / "copy.db-wal") == log);
}

TEST_CASE("a path that cannot be a results file is a misuse", "[unit]") {
  const Folder folder;
  overwrite(folder / "file", "text");
  CHECK(contains(refusal(folder / "file/child"), "cannot create the folder"));
  CHECK(contains(refusal("/proc/results.db"), "cannot be opened"));
  CHECK(contains(refusal("/proc/attnbench/results.db"), "cannot create the folder"));
  CHECK(contains(refusal(folder / ""), "is a folder"));
  CHECK(contains(refusal("/dev/null"), "is a device"));
  CHECK(contains(refusal(""), "is empty"));
}

TEST_CASE("missing folders are made and an empty file is taken as new", "[unit]") {
  const Folder folder;
  { const Store store(folder / "a/b/results.db"); }
  CHECK(fs::file_size(folder / "a/b/results.db") > 0);
  overwrite(folder / "empty.db", "");
  CHECK(csv(Store(folder / "empty.db")).starts_with("experiment,"));
}

TEST_CASE("a path that SQLite would read as something else is a file", "[unit]") {
  const Folder folder;
  for (const char* name : {":memory:", "a%20b?mode=memory#c.db", "it's \"quoted\".db"}) {
    { Store(folder / name).begin_run("a", "{}"); }
    CHECK(fs::file_size(folder / name) > 0);
    CHECK_NOTHROW(Store::open_existing(folder / name));
  }
}

TEST_CASE("the export is sorted by content whatever the order of recording", "[unit]") {
  const Folder folder;
  struct Record {
    std::string method;
    Index n, replicate;
    std::vector<Measurement> measurements;
  };
  std::vector<Record> records = {{"a", 64, 0, {scalar("x", 1), scalar("b", 2)}},
                                 {"a", 64, 1, {scalar("x", 3)}},
                                 {"a", 128, 0, {{"array", "1", {11}, std::vector<double>(11, 4)}}},
                                 {"a", 1024, 2, {}},
                                 {"b", 64, 10, {scalar("x", 6)}},
                                 {"b", 64, 9, {scalar("x", 7)}}};
  std::string first;
  for (int order = 0; order < 3; ++order) {
    Store store(folder / ("order" + std::to_string(order)));
    for (const Record& r : records)
      store.record(store.begin_run("a", "{}"), cell(r.method, r.n), r.replicate, {}, 1, r.measurements);
    const std::string text = csv(store);
    if (order == 0) first = text;
    CHECK(text == first);
    std::rotate(records.begin(), records.begin() + 2, records.end());
    std::ranges::reverse(records[0].measurements);
  }
  std::vector<std::string> seen;
  Store store(folder / "order0");
  for (const json& row : parsed(store))
    seen.push_back(row["method"].get<std::string>() + " " + row["n"].dump() + " " + row["replicate"].dump() + " " +
                   row["metric"].dump() + " " + row["index"].dump());
  std::vector<std::string> expected = {R"(a 64 0 "b" null)", R"(a 64 0 "x" null)", R"(a 64 1 "x" null)"};
  for (int i = 0; i < 11; ++i) expected.push_back(R"(a 128 0 "array" ")" + std::to_string(i) + "\"");
  for (const char* line : {"a 1024 2 null null", R"(b 64 9 "x" null)", R"(b 64 10 "x" null)"})
    expected.emplace_back(line);
  CHECK(seen == expected);
}

TEST_CASE("the export has cells that differ in the seed alone in the order of the numbers", "[unit]") {
  const Folder folder;
  Store store(folder / "results.db");
  for (const std::uint64_t seed : {10u, 2u, 9u}) {
    CellRow row = cell("a");
    row.seed = seed;
    row.key += " seed " + std::to_string(seed);
    store.record(store.begin_run("a", "{}"), row, 0, {}, 1, {scalar("x", 1)});
  }
  std::vector<std::string> seeds;
  for (const json& row : parsed(store)) seeds.push_back(row["seed"].dump());
  CHECK(seeds == std::vector<std::string>{R"("2")", R"("9")", R"("10")"});
}

TEST_CASE("text with commas, quotes and line breaks is quoted, in CSV and in JSON", "[unit]") {
  const Folder folder;
  Store store(folder / "results.db");
  const std::string reason = "said \"no\",\r\nthen \x01 died: \xff";
  store.record(store.begin_run("a", "{}"), cell("performer:m=256,share=head"), 0, {Ending::Kind::crashed, reason}, 1,
               {});
  const std::string text = csv(store);
  CHECK(contains(text, ",\"performer:m=256,share=head\","));
  // The byte outside UTF-8 became U+FFFD when it was recorded.
  CHECK(contains(text, ",crashed,\"said \"\"no\"\",\r\nthen \x01 died: \xEF\xBF\xBD\",,,,\n"));
  CHECK(parsed(store)[0]["reason"] == "said \"no\",\r\nthen \x01 died: \xEF\xBF\xBD");
}

TEST_CASE("arrays keep their shape, in row-major order", "[unit]") {
  const Folder folder;
  Store store(folder / "results.db");
  store.record(store.begin_run("a", "{}"), cell("uniform"), 0, {}, 1,
               {{"matrix", "s", {2, 3}, {0, 1, 2, 10, 11, 12}}, {"none", "1", {0}, {}}, {"one", "1", {1}, {5}}});
  std::map<std::string, double> values;
  for (const json& row : parsed(store))
    values[row["metric"].get<std::string>() + row["index"].get<std::string>()] = row["value"];
  CHECK(values == std::map<std::string, double>{{"matrix0;0", 0},
                                                {"matrix0;1", 1},
                                                {"matrix0;2", 2},
                                                {"matrix1;0", 10},
                                                {"matrix1;1", 11},
                                                {"matrix1;2", 12},
                                                {"one0", 5}});
}

TEST_CASE("JSON has the columns of the CSV, clock columns last and only on request", "[unit]") {
  const Folder folder;
  Store store(folder / "results.db");
  CHECK(parsed(store) == json::array());
  store.record(store.begin_run("attnbench run x", "{}"), cell("uniform"), 0, {}, 0.25,
               {scalar("a", infinity), scalar("b", -infinity), scalar("c", 0.1)});
  for (const bool clock : {false, true}) {
    const json rows = parsed(store, clock);
    REQUIRE(rows.size() == 3);
    std::vector<std::string> columns;
    for (const auto& column : cell_columns) columns.emplace_back(column.name);
    columns.emplace_back("m");
    for (const auto& column : row_columns) columns.emplace_back(column.name);
    if (clock)
      for (const auto& column : clock_columns) columns.emplace_back(column.name);
    const std::string header = fmt::format("{}", fmt::join(columns, ","));
    for (const std::string& column : columns) CHECK(rows[0].contains(column));
    CHECK(rows[0].size() == columns.size());
    CHECK(csv(store, clock).starts_with(header + "\n"));
    CHECK(rows[0]["value"] == "inf");
    CHECK(rows[1]["value"] == "-inf");
    CHECK(rows[2]["value"] == 0.1);
  }
  const json row = parsed(store, true)[0];
  CHECK(row["wall_seconds"] == 0.25);
  CHECK(row["command"] == "attnbench run x");
  CHECK(row["started"].get<std::string>().size() == std::string("2026-01-01T00:00:00Z").size());
}

TEST_CASE("an export that cannot be written says so", "[unit]") {
  const Folder folder;
  const Store store(folder / "results.db");
  std::ofstream full("/dev/full");
  CHECK_THROWS_AS(store.export_table(full, {}), Misuse);
}

TEST_CASE("measurements that break a rule are refused before anything is stored", "[unit]") {
  const Folder folder;
  Store store(folder / "results.db");
  const auto run = store.begin_run("a", "{}");
  const auto record = [&](std::vector<Measurement> measurements) {
    store.record(run, cell("uniform"), 0, {}, 1, measurements);
  };
  CHECK_THROWS_AS(record({scalar("fine", 1), scalar("error", std::nan(""))}), std::logic_error);
  CHECK_THROWS_AS(record({scalar("error", 1), scalar("error", 2)}), std::logic_error);
  CHECK_THROWS_AS(record({{"error", "1", {3}, {1, 2}}}), std::logic_error);
  CHECK_THROWS_AS(record({{"error", "1", {}, {}}}), std::logic_error);
  CHECK_THROWS_AS(record({scalar("", 1)}), std::logic_error);
  CHECK_THROWS_AS(store.record(run + 1, cell("uniform"), 0, {}, 1, {}), std::logic_error);
  CHECK(store.ended_replicates(cell("uniform").key).empty());
}

TEST_CASE("a figure replaces the one of the same recipe and name", "[unit]") {
  const Folder folder;
  const fs::path path = folder / "results.db";
  Store store(path);
  store.put_figure("favor-1", "mse", 0, R"({"old":1})");
  store.put_figure("favor-1", "mse", 2, R"({"new":1})");
  store.put_figure("favor-1", "rank", 1, "{}");
  SQLite::Database reader(path.string());
  CHECK(reader.execAndGet("SELECT count(*) FROM figure").getInt() == 2);
  CHECK(reader.execAndGet("SELECT json FROM figure WHERE name = 'mse'").getString() == R"({"new":1})");
  CHECK(reader.execAndGet("SELECT position FROM figure WHERE name = 'mse'").getInt() == 2);
}

TEST_CASE("verdicts replace those of the same recipe", "[unit]") {
  const Folder folder;
  const fs::path path = folder / "results.db";
  Store store(path);
  store.put_reproduction(
      {.recipe = "a", .verdicts = {{{"old"}, {Ruling::refuted, "1"}}, {{"older"}, {Ruling::holds, "2"}}}});
  store.put_reproduction({.recipe = "b", .verdicts = {{{"of b"}, {Ruling::open, ""}}}});
  store.put_reproduction({.recipe = "a",
                          .size = "quick",
                          .command = "attnbench reproduce a",
                          .seconds = 2,
                          .cells = {"k1", "k2"},
                          .verdicts = {{{.text = "new",
                                         .source = "Fig. 2",
                                         .quotation = "q",
                                         .paraphrase = "p",
                                         .definition = "d",
                                         .threshold = "t",
                                         .expected = Ruling::refuted,
                                         .because = "b"},
                                        {.ruling = Ruling::depends,
                                         .numbers = "3",
                                         .region = "holds at x",
                                         .compared = {{"c", "holds", 1, 0.5, infinity, 32}}}}}});
  SQLite::Database reader(path.string());
  CHECK(reader
            .execAndGet("SELECT group_concat(recipe || position || outcome || statement || numbers, ';') FROM "
                        "(SELECT * FROM verdict ORDER BY recipe, position)")
            .getString() == "a0DEPENDSnew3;b0OPENof b");
  CHECK(reader.execAndGet("SELECT region || '|' || expected || '|' || source FROM verdict WHERE recipe = 'a'")
            .getString() == "holds at x|REFUTED|Fig. 2");
  CHECK(reader
            .execAndGet("SELECT quotation || paraphrase || definition || threshold || because FROM verdict WHERE "
                        "recipe = 'a'")
            .getString() == "qpdtb");
  CHECK(nlohmann::json::parse(reader.execAndGet("SELECT compared FROM verdict WHERE recipe = 'a'").getString()) ==
        nlohmann::json::parse(
            R"([{"what":"c","side":"holds","value":1.0,"low":0.5,"high":null,"count":32}])"));  // JSON has no infinity
  CHECK(reader.execAndGet("SELECT size || command || seconds || cells FROM reproduction WHERE recipe = 'a'")
            .getString() == R"(quickattnbench reproduce a2.0["k1","k2"])");
}

TEST_CASE("scalars of a cell come by replicate, of those that are done", "[unit]") {
  const Folder folder;
  Store store(folder / "results.db");
  const auto run = store.begin_run("a", "{}");
  store.record(run, cell("uniform"), 0, {}, 1, {scalar("error", 0.5), scalar("other", 7)});
  store.record(run, cell("uniform"), 4, {}, 1, {scalar("error", 0.25), {"error_rows", "1", {1}, {9}}});
  store.record(run, cell("uniform"), 5, {Ending::Kind::invalid, "overflow"}, 1, {scalar("error", 9)});
  store.record(run, cell("zero"), 0, {}, 1, {scalar("error", 9)});
  CHECK(store.scalars(cell("uniform").key, "error") == std::map<Index, double>{{0, 0.5}, {4, 0.25}});
  CHECK(store.scalars(cell("uniform").key, "error_rows").empty());
  CHECK(store.scalars("absent", "error").empty());
  CHECK(store.arrays(cell("uniform").key, "error_rows") == std::map<Index, std::vector<double>>{{4, {9}}});
  CHECK(store.arrays(cell("uniform").key, "error").empty());
}

TEST_CASE("the environment is a JSON object of known facts", "[unit]") {
  const json environment = json::parse(environment_json());
  CHECK(environment.at("processor").at("cores_allowed") == allowed_cores());
  CHECK(environment.at("libraries").contains("Eigen"));
  CHECK(environment.at("build").contains("compiler"));
  // The linker's note, as it lies in the file.
  const std::string id = environment.at("build").at("binary");
  std::string note = "GNU";
  note += '\0';
  for (size_t i = 0; i < id.size(); i += 2) note += static_cast<char>(std::stoi(id.substr(i, 2), nullptr, 16));
  CHECK(id.size() == 40);
  CHECK(contains(file_bytes(library_file()).value(), note));
  CHECK(environment.at("host").contains("system"));
  const int cores = allowed_cores();
  CHECK(cores >= 1);
  for (const auto& [granted, want] :
       {std::pair("1", 1), std::pair("1000000", cores), std::pair("many", cores), std::pair("0", cores)}) {
    setenv("SLURM_CPUS_PER_TASK", granted, 1);
    CHECK(allowed_cores() == want);
  }
  unsetenv("SLURM_CPUS_PER_TASK");
  CHECK(allowed_cores() == cores);
  CHECK(available_memory() > 1 << 20);
  CHECK(contains(this_machine(), environment.at("host").at("name").get<std::string>()));
  // Two libraries of one installation are two machines: their times are of different programs.
  CHECK(environment.at("build").at("instructions") == instruction_level());
  CHECK(this_machine().ends_with(instruction_level()));
}

}  // namespace attnbench::store_test
