// The meaning of a typed request: axes that move together, shards, files of options, limits, the replicates that are
// missing and the time that they will take.

#include <fstream>
#include <numeric>
#include <set>
#include <sstream>

#include "harness/cli/request.hpp"
#include "harness/experiment/cell_row.hpp"
#include "harness/runner/backlog.hpp"
#include "harness/store/store.hpp"
#include "tests/folder.hpp"
#include "tests/misuse.hpp"

namespace attnbench::requests_test {

namespace {

using Texts = std::vector<std::string>;

RunRequest request(Texts methods, std::vector<Axis> sweep, std::vector<Texts> zip = {}) {
  return {.experiment = "rank",
          .methods = std::move(methods),
          .inputs = {"gaussian"},
          .sweep = std::move(sweep),
          .zip = std::move(zip)};
}

// "performer:m=8 16" for each cell: its method and length.
Texts texts_of(const std::vector<Cell>& cells) {
  Texts all;
  for (const Cell& cell : cells) all.push_back(cell.method.spec() + " " + std::to_string(cell.problem.shape.nk));
  return all;
}

std::string misuse_of_words(Texts words) {
  words.insert(words.begin(), {"rank", "--method", "performer"});
  return misuse_of([&] { parse_request("run", words); });
}

RunArguments typed(const Texts& words) { return *parse_request("run", words); }

std::string misuse_of_config(const std::string& text) {
  return misuse_of([&] {
    std::istringstream stream(text);
    parse_request_config(stream, "my.cfg");
  });
}

}  // namespace

TEST_CASE("zipped axes move together, and a method has the values of its own axes", "[unit]") {
  CHECK(texts_of(expand(request({"performer", "softmax"}, {{"n", {"16", "32"}}, {"m", {"4", "8"}}}, {{"n", "m"}}))) ==
        Texts{"performer:m=4 16", "softmax 16", "performer:m=8 32", "softmax 32"});
  CHECK(expand(request({"performer"}, {{"n", {"16", "32"}}, {"m", {"4", "8"}}})).size() == 4);
  const auto three =
      expand(request({"performer"}, {{"n", {"16", "32"}}, {"m", {"4", "8"}}, {"d", {"2", "3", "4"}}}, {{"n", "m"}}));
  CHECK(three.size() == 6);
}

TEST_CASE("two zips multiply, and cells that share an input stand together all the same", "[unit]") {
  const auto cells =
      expand(request({"performer", "local"},
                     {{"m", {"4", "8", "16"}}, {"window", {"1", "2", "3"}}, {"n", {"16", "32"}}, {"d", {"2", "4"}}},
                     {{"m", "window"}, {"n", "d"}}));
  CHECK(cells.size() == 12);
  std::set<std::string> seen;
  std::string last;
  for (const Cell& cell : cells)
    if (const std::string key = cell.input_key(); key != last) {
      CHECK(seen.insert(key).second);
      last = key;
    }
  CHECK(seen.size() == 2);
}

TEST_CASE("an axis that only one place of a zip has a use for is applied there", "[unit]") {
  CHECK(texts_of(expand(request({"truncated:window=2"}, {{"base", {"linear", "performer"}}, {"m", {"8", "16"}}},
                                {{"base", "m"}}))) ==
        Texts{"truncated:window=2 1024", "truncated:base=performer,m=16,window=2 1024"});
}

TEST_CASE("a zip of unknown axes or of different lengths is refused", "[unit]") {
  const auto misuse = [](std::vector<Axis> sweep, std::vector<Texts> zip) {
    return misuse_of([&] { expand(request({"performer"}, std::move(sweep), std::move(zip))); });
  };
  CHECK(contains(misuse({{"n", {"16", "32"}}}, {{"n", "m"}}), "--zip n,m: 'm' is not an axis of this run"));
  CHECK(contains(misuse({{"n", {"16", "32"}}, {"m", {"8"}}}, {{"n", "m"}}), "n has 2 values and m has 1"));
  CHECK(contains(misuse({{"n", {"16"}}, {"m", {"8"}}, {"d", {"4"}}}, {{"n", "m"}, {"n", "d"}}),
                 "'n' is in another --zip already"));
  const Axis many = parse_axis("m=1:100000:+1"), sizes = parse_axis("n=1:100000:+1"), other = parse_axis("d=1:200:+1");
  CHECK(contains(misuse({many, sizes, other}, {{"m", "n"}}), "use fewer"));
  for (const char* text : {"", "n", "n,", ",n", "n,,m", "n,n"}) {
    CAPTURE(text);
    CHECK(contains(misuse_of([&] { parse_zip(text); }), "such as n,m"));
  }
}

TEST_CASE("a shard is one of so many, counted from 1", "[unit]") {
  CHECK((parse_shard("1/1").index == 1 && parse_shard("7/8").index == 7 && parse_shard("7/8").count == 8));
  for (const char* text : {"", "1", "/", "1/", "/1", "0/3", "4/3", "-1/3", "1/0", "1/-3", "a/b", "1.5/3", "1/3/5",
                           "1 /3", " 1/3", "+1/3", "1/1000001", "99999999999999999999/3"}) {
    CAPTURE(text);
    CHECK(contains(misuse_of([&] { parse_shard(text); }), "expected i/k with 1 <= i <= k"));
  }
}

namespace {

// The shards of a request: how often each unit is in one, and the modelled seconds of each.
struct Cut {
  std::vector<int> times;
  std::vector<double> seconds;
};

Cut cut(const std::vector<Cell>& cells, Index replicates, Index count) {
  Cut all{std::vector<int>(cells.size() * static_cast<size_t>(replicates)), {}};
  for (Index i = 1; i <= count; ++i) {
    const auto mine = units_of_shard(cells, replicates, {i, count});
    all.seconds.push_back(0);
    for (size_t unit = 0; unit < mine.size(); ++unit) {
      all.times[unit] += mine[unit];
      if (mine[unit])
        all.seconds.back() += seconds_by_model(cells[unit / static_cast<size_t>(replicates)], nominal_rates);
    }
  }
  return all;
}

}  // namespace

TEST_CASE("shards are disjoint and together they are all, whatever is asked for", "[unit]") {
  std::vector<RunRequest> requests{
      request({"performer", "softmax"}, {{"m", {"4", "8", "16"}}, {"n", {"16", "64", "256"}}}),
      request({"performer"}, {{"m", {"4", "8", "16", "32", "64"}}}), request({"softmax"}, {})};
  requests.push_back(requests[0]);
  requests.back().experiment = "speed";
  requests.push_back(requests[0]);
  requests.back().experiment = "kernel-error";
  for (const RunRequest& wanted : requests) {
    const auto cells = expand(wanted);
    for (const Index replicates : {1, 3})
      for (const Index count : {1, 2, 3, 7, 100}) {
        CAPTURE(wanted.experiment, cells.size(), replicates, count);
        const Cut all = cut(cells, replicates, count);
        CHECK(std::count(all.times.begin(), all.times.end(), 1) == std::ssize(all.times));
      }
  }
}

TEST_CASE("the shards of many alike cells take alike, also when all share one input", "[unit]") {
  for (const auto& wanted : {request({"performer"}, {parse_axis("m=8:248:+8")}),
                             request({"performer"}, {parse_axis("m=8:32:+8"), parse_axis("n=16:256:x2")})}) {
    const auto cells = expand(wanted);
    const Cut three = cut(cells, 4, 3);
    const auto [least, most] = std::minmax_element(three.seconds.begin(), three.seconds.end());
    CAPTURE(*least, *most);
    CHECK(*most < 1.2 * *least);
  }
}

TEST_CASE("what is timed together stays in one shard", "[unit]") {
  RunRequest wanted = request({"performer", "softmax", "linear"}, {{"n", {"16", "32", "64"}}, {"d", {"4", "8"}}});
  wanted.experiment = "speed";
  const auto cells = expand(wanted);
  const Index replicates = 2;
  for (Index i = 1; i <= 3; ++i) {
    const auto mine = units_of_shard(cells, replicates, {i, 3});
    std::map<std::string, std::set<bool>> sessions;  // all methods and lengths
    for (size_t unit = 0; unit < mine.size(); ++unit)
      sessions[fmt::format("d={} replicate={}", cells[unit / 2].problem.shape.d, unit % 2)].insert(mine[unit]);
    CHECK(sessions.size() == 4);
    for (const auto& [session, in] : sessions) CHECK(in.size() == 1);
    CHECK(std::count(mine.begin(), mine.end(), true) > 0);
  }
}

TEST_CASE("a file of options says what the command line would", "[unit]") {
  std::istringstream text(
      "# a sweep\n\nexperiment = rank\nmethod = performer:m=64   # positive features\nmethod = "
      "per-head:[local],[linear]\n"
      "sweep = n=16,32\r\nsweep = m=4,8\nzip = n,m\nd = 8\nreplicates = 3\nshard = 2/4\ntimeout = 90\nmemory = 2GiB\n"
      "causal = true\nretry = true\nresults = x.db\nwait-quiet = 30\nuntil = rel-ci=0.1\n");
  const RunArguments read = parse_request_config(text, "my.cfg");
  CHECK(read.request.experiment == "rank");
  CHECK(read.request.methods == Texts{"performer:m=64", "per-head:[local],[linear]"});
  CHECK(read.request.inputs == Texts{"gaussian"});
  REQUIRE(read.request.sweep.size() == 2);
  CHECK(read.request.sweep[0].values == Texts{"16", "32"});
  CHECK(read.request.zip == std::vector<Texts>{{"n", "m"}});
  CHECK(read.request.d == std::vector<Index>{8});
  CHECK((read.request.replicates == 3 && read.request.shard.index == 2 && read.request.shard.count == 4));
  CHECK((read.request.causal == true && read.request.retry && read.request.until->relative == 0.1));
  CHECK((read.limits.seconds == 90 && read.limits.bytes == 2147483648.0 && read.limits.wait_quiet == 30));
  CHECK(read.results == "x.db");
}

TEST_CASE("a file of options may begin with a byte order mark", "[unit]") {
  std::istringstream text(
      "\xEF\xBB\xBF"
      "experiment = rank\nmethod = softmax\n");
  CHECK(parse_request_config(text, "my.cfg").request.experiment == "rank");
}

TEST_CASE("the command line beats the file, option by option", "[unit]") {
  const Folder folder;
  std::ofstream(folder / "a.cfg") << "experiment = rank\nmethod = softmax\nmethod = linear\nn = 16\nn = 32\n"
                                     "causal = true\nseed = 7\nreplicates = 4\n";
  const std::string file = folder / "a.cfg";
  RunArguments read = typed({"--config", file});
  CHECK(read.request.experiment == "rank");
  CHECK(read.request.n == std::vector<Index>{16, 32});
  CHECK((read.request.causal == true && read.request.seed == 7 && read.request.replicates == 4));
  read = typed({"sparsity", "--config", file, "--method", "uniform", "-n", "64", "--bidirectional", "--seed", "8"});
  CHECK(read.request.experiment == "sparsity");
  CHECK(read.request.methods == Texts{"uniform"});
  CHECK(read.request.n == std::vector<Index>{64});
  CHECK((read.request.causal == false && read.request.seed == 8 && read.request.replicates == 4));
}

TEST_CASE("a file of options that is none is refused with its line", "[unit]") {
  const std::string start = "experiment = rank\nmethod = softmax\n";
  CHECK(contains(misuse_of_config(start + "methud = linear\n"), "my.cfg, line 3"));
  CHECK(contains(misuse_of_config(start + "methud = linear\n"), "methud"));
  CHECK(contains(misuse_of_config(start + "\n# fine\nno equals sign\n"), "my.cfg, line 5"));
  CHECK(contains(misuse_of_config(start + "[section]\n"), "my.cfg, line 3: sections are not known"));
  CHECK(contains(misuse_of_config(start + "config = other.cfg\n"), "my.cfg, line 3"));
  CHECK(contains(misuse_of_config(start + "help = true\n"), "my.cfg, line 3"));
  CHECK(contains(misuse_of_config(std::string("\x7f"
                                              "ELF\0\1\2",
                                              7)),
                 "my.cfg, line 1: this is not text"));
  CHECK(contains(misuse_of_config(start + "seed = 1\nseed = 2\n"), "seed"));
  CHECK(contains(misuse_of_config(start + "causal = maybe\n"), "causal"));
  CHECK(contains(misuse_of_config("method = softmax\n"), "no experiment given"));
  CHECK(contains(misuse_of_config(""), "no experiment given"));
  CHECK(contains(misuse_of_config(start + std::string(2'000'000, 'x')), "line 3: a line of 2000000 characters"));
  const Folder folder;
  const auto with_file = [&](const std::string& file) { return misuse_of_words({"--config", file}); };
  CHECK(contains(with_file(folder / "absent.cfg"), "there is no such file"));
  CHECK(contains(with_file(folder / "."), "is a folder"));
  std::ofstream(folder / "binary.cfg", std::ios::binary) << std::string("\0\1\2\3", 4);
  CHECK(contains(with_file(folder / "binary.cfg"), "binary.cfg, line 1: this is not text"));
}

TEST_CASE("options that look like the placeholders of Boost's messages are refused like others", "[unit]") {
  // Found by fuzzing: Boost replaced them by themselves, for ever.
  const auto config = [](const std::string& line) {
    std::istringstream stream("experiment = rank\nmethod = linear\n" + line + "\n");
    parse_request_config(stream, "my.cfg");
  };
  CHECK_THROWS_WITH(config("m%original_token%ethod = linear"), ContainsSubstring("line 3"));
  CHECK_THROWS_WITH(config("causal = %value%"), ContainsSubstring("?value?"));
  CHECK_THROWS_AS(parse_request("run", {"rank", "--%option%=1"}), Misuse);
}

TEST_CASE("all axes together have at most 300,000 values", "[unit]") {
  // Found by fuzzing: a hundred lines of 22 characters were ten million values.
  const auto sweeping = [](int axes) {
    std::string text = "experiment = attention-error\nmethod = linear\n";
    for (int a = 0; a < axes; ++a) text += fmt::format("sweep = n{}=1:100000:+1\n", a);
    std::istringstream stream(text);
    return parse_request_config(stream, "my.cfg").request.sweep.size();
  };
  CHECK(sweeping(3) == 3);
  CHECK_THROWS_WITH(sweeping(4), ContainsSubstring("at most 300000 are read"));
}

TEST_CASE("limits and the like are numbers with a meaning", "[unit]") {
  const RunArguments usual = typed({"rank", "--method", "softmax"});
  CHECK((usual.limits.seconds == 3600 && !usual.limits.bytes && !usual.limits.wait_quiet));
  CHECK((usual.request.replicates == 1 && !usual.request.until && !usual.request.retry));
  CHECK(usual.request.precision == Precision::f64);
  CHECK(typed({"speed", "--method", "softmax"}).request.precision == Precision::f32);  // timing is in float
  for (const Precision precision : {Precision::f32, Precision::f64, Precision::bf16})
    CHECK(typed({"rank", "--method", "softmax", "--precision", to_string(precision)}).request.precision == precision);
  for (const char* other : {"bf17", "f16", "BF16"}) {
    CAPTURE(other);
    CHECK(contains(misuse_of_words({"--precision", other}), fmt::format("{}: expected f32, f64 or bf16", other)));
  }
  CHECK(typed({"rank", "--method", "softmax", "--until", "rel-ci=0.1"}).request.replicates == 1000);
  CHECK(typed({"rank", "--method", "softmax", "--until", "rel-ci=0.1", "-r", "50"}).request.replicates == 50);
  CHECK(typed({"rank", "--method", "softmax", "--wait-quiet"}).limits.wait_quiet == 600);
  CHECK(typed({"rank", "--method", "softmax", "--wait-quiet=5"}).limits.wait_quiet == 5);
  CHECK(parse_memory_size("memory", "4GB") == 4e9);
  CHECK(parse_memory_size("memory", "1.5MiB") == 1.5 * 1048576);
  CHECK(parse_memory_size("memory", "2GiB") == 2147483648.0);
  CHECK(parse_memory_size("memory", "1e9") == 1e9);
  CHECK(parse_memory_size("max-memory", "1") == 1);
  CHECK(typed({"rank", "--method", "softmax", "--memory", "1e6"}).limits.bytes == 1e6);
  CHECK(contains(misuse_of_words({"--memory", "4"}), "that is 4 bytes"));
  CHECK(contains(misuse_of_words({"--memory", "4"}), "did you mean 4GB?"));
  CHECK(contains(misuse_of_words({"--memory", "4kB"}), "that is 4000 bytes"));
  for (const char* size : {"", "GB", "4G", "4 GB", "0", "-1GB", "4XB", "nan", "inf", "1e999", "4GB "}) {
    CAPTURE(size);
    CHECK(contains(misuse_of([&] { parse_memory_size("memory", size); }), "expected a size such as 4GB"));
  }
  for (const char* option : {"-n", "-d", "--dv", "--heads", "--replicates", "--threads"})
    for (const char* count : {"0", "-1", "1.5", "many"}) {
      CAPTURE(option, count);
      CHECK(contains(misuse_of_words({option, count}), "expected an integer of at least 1"));
    }
  for (const char* seconds : {"0", "-1", "soon", "nan", "inf", "10s"}) {
    CAPTURE(seconds);
    CHECK(contains(misuse_of_words({"--timeout=" + std::string(seconds)}), "expected seconds, a number above 0"));
    CHECK(contains(misuse_of_words({"--wait-quiet=" + std::string(seconds)}), "expected seconds, a number above 0"));
  }
}

TEST_CASE("options that contradict each other are refused", "[unit]") {
  CHECK(contains(misuse_of_words({"-n", "8", "--sweep", "n=16,32"}), "-n and --sweep n=... both say n"));
  CHECK(contains(misuse_of_words({"--logit-scale", "2", "--sweep", "logit_scale=1,2"}), "both say logit_scale"));
  CHECK(contains(misuse_of_words({"--until", "rel-ci=0.1,seconds=5"}), "rank measures no time"));
  CHECK(contains(misuse_of_words({"--match", "seconds=1e-3", "--shard", "1/2"}), "budgets of its own"));
  CHECK(contains(misuse_of_words({"--until", "rel-ci=0"}), "expected rel-ci=X"));
  CHECK(contains(misuse_of_words({"--shard", "3/2"}), "expected i/k"));
  CHECK(contains(misuse_of_words({"--causal", "--bidirectional"}), "exclude each other"));
}

namespace {

// A request of four cells and the key of each.
struct Four {
  RunRequest wanted = request({"performer", "uniform"}, {{"n", {"16", "32"}}});
  std::vector<Cell> cells = expand(wanted);
  std::string key(size_t cell) const { return row_of(cells[cell], false).key; }
};

}  // namespace

TEST_CASE("what is missing is what has not ended", "[unit]") {
  Four four;
  four.wanted.replicates = 3;
  const EndedUnits ended{{four.key(0), {{0, Ending::Kind::done}, {1, Ending::Kind::crashed}, {7, Ending::Kind::done}}},
                         {"another cell's key", {{0, Ending::Kind::done}}}};
  const Backlog backlog = backlog_of(four.wanted, four.cells, ended, nullptr);
  REQUIRE(backlog.entries.size() == 4);
  CHECK(backlog.already == 2);
  CHECK(backlog.failed == 1);
  CHECK(backlog.entries[0].missing == std::vector<Index>{2});
  CHECK(backlog.entries[1].missing == std::vector<Index>{0, 1, 2});
}

TEST_CASE("a retry does again what may end otherwise, and nothing else", "[unit]") {
  const Folder folder;
  Four four;
  four.wanted.replicates = 7;
  const CellRow row = row_of(four.cells[0], false);
  Store store(folder / "r.db");
  const auto run = store.begin_run("", "{}");
  using Kind = Ending::Kind;
  const std::vector<Kind> kinds{Kind::done,      Kind::skipped,       Kind::failed, Kind::crashed,
                                Kind::timed_out, Kind::out_of_memory, Kind::invalid};
  for (size_t i = 0; i < kinds.size(); ++i)
    store.record(run, row, static_cast<Index>(i), {kinds[i], kinds[i] == Kind::done ? "" : "so"}, 1, {});
  const Backlog kept = backlog_of(four.wanted, four.cells, ended_units(four.wanted, store), &store);
  CHECK(kept.entries[0].missing.empty());
  CHECK(kept.failed == 4);
  four.wanted.retry = true;
  const Backlog again = backlog_of(four.wanted, four.cells, ended_units(four.wanted, store), &store);
  CHECK(again.entries[0].missing == std::vector<Index>{2, 3, 4, 5});
  CHECK(again.failed == 0);
}

TEST_CASE("with a precision, a cell asks for its own next stage and is whole in one shard", "[unit]") {
  const Folder folder;
  Four four;
  four.wanted.until = Until{.relative = 0.05};
  four.wanted.replicates = 1000;
  Store store(folder / "r.db");
  const auto run = store.begin_run("", "{}");
  for (Index r = 0; r < 5; ++r) {
    const double spread = static_cast<double>(r % 2);
    store.record(run, row_of(four.cells[0], false), r, {}, 1, {{"effective_rank", "1", {}, {10 + 0.1 * spread}}});
    store.record(run, row_of(four.cells[1], false), r, {}, 1, {{"effective_rank", "1", {}, {10 + 5 * spread}}});
    store.record(run, row_of(four.cells[2], false), r, {Ending::Kind::skipped, "no form"}, 1, {});
  }
  const Backlog backlog = backlog_of(four.wanted, four.cells, ended_units(four.wanted, store), &store);
  CHECK(backlog.entries[0].stopping->state == Stopping::State::precise);
  CHECK(backlog.entries[0].missing.empty());
  CHECK(backlog.entries[1].missing == std::vector<Index>{5, 6, 7, 8, 9});
  CHECK(backlog.entries[2].stopping->state == Stopping::State::unmeasured);
  CHECK(backlog.entries[2].missing.empty());
  CHECK(backlog.entries[3].missing == std::vector<Index>{0, 1, 2, 3, 4});
  size_t cells = 0;
  for (Index i = 1; i <= 3; ++i) {
    four.wanted.shard = {i, 3};
    cells += backlog_of(four.wanted, four.cells, {}, nullptr).entries.size();
  }
  CHECK(cells == 4);
}

TEST_CASE("more replicates than can be are refused before they are made", "[unit]") {
  Four four;
  four.wanted.replicates = 1'000'000'000;
  CHECK(contains(misuse_of([&] { backlog_of(four.wanted, four.cells, {}, nullptr); }), "give fewer replicates"));
}

namespace {

PastCell past_of(const Cell& cell, double times) {
  return {.experiment = cell.experiment.spec(),
          .method = cell.method.spec(),
          .input = cell.input.spec(),
          .shape = cell.problem.shape,
          .seconds = times * seconds_by_model(cell, nominal_rates)};
}

Rates no_rates(Precision) { throw std::logic_error("the machine was asked"); }

}  // namespace

TEST_CASE("an estimate is the cost model times what past cells of that method took beside it", "[unit]") {
  const auto past = expand(request({"performer"}, {{"n", {"256", "2048"}}}));
  const auto next = expand(request({"performer:m=64"}, {{"n", {"300"}}}));
  const std::vector<PastCell> known{past_of(past[0], 3), past_of(past[1], 5)};
  const RunEstimate expected = estimate(std::vector<CellsToCome>{{&next[0], 2}}, 1, known, no_rates);
  CHECK(expected.seconds == Approx(6 * seconds_by_model(next[0], nominal_rates)));  // 256 is nearer than 2048
  CHECK((expected.by_past && expected.past_cells == 1));
  CHECK((expected.low < expected.seconds && expected.high > expected.seconds));
  CHECK(expected.high >= 5. / 3 * expected.seconds);
  CHECK(contains(expected.text(), "from 1 past cell"));
  CHECK(expected.bytes >= cell_bytes(next[0]));
}

TEST_CASE("without a past the cost model speaks, at this machine's rates and within a factor of ten", "[unit]") {
  const auto next = expand(request({"performer"}, {{"n", {"512"}}}));
  Rates slow = nominal_rates;
  slow.fma_peak /= 2;
  slow.exp_rate /= 2;
  const auto on = [&](const Rates& rates) {
    return estimate(std::vector<CellsToCome>{{&next[0], 1}}, 1, {}, [&](Precision) { return rates; });
  };
  CHECK(on(slow).seconds > 1.5 * on(nominal_rates).seconds);
  CHECK(on(slow).high == Approx(10 * on(slow).seconds));
  CHECK(contains(on(slow).text(), "from the cost model, within a factor of about 10"));
}

TEST_CASE("cells side by side share the threads, but none is shorter than itself", "[unit]") {
  const auto cells = expand(request({"performer"}, {{"n", {"64"}}}));
  const std::vector<PastCell> known{past_of(cells[0], 2)};
  const double each = 2 * seconds_by_model(cells[0], nominal_rates);
  const auto with = [&](Index replicates, int threads) {
    return estimate(std::vector<CellsToCome>{{&cells[0], replicates}}, threads, known, no_rates).seconds;
  };
  CHECK(with(8, 1) == Approx(8 * each));
  CHECK(with(8, 4) == Approx(2 * each));
  CHECK(with(1, 4) == Approx(each));
  CHECK(estimate({}, 4, known, no_rates).seconds == 0);

  const auto two = expand(request({"performer"}, {{"n", {"64", "4096"}}}));
  const double longest = 2 * seconds_by_model(two[1], nominal_rates);
  REQUIRE(longest > 100 * each);
  CHECK(estimate(std::vector<CellsToCome>{{&two[0], 3}, {&two[1], 1}}, 4, known, no_rates).seconds == Approx(longest));
}

TEST_CASE("the past of a results file is what was done there, of that experiment", "[unit]") {
  const Folder folder;
  Four four;
  Store store(folder / "r.db");
  const auto run = store.begin_run("", "{}");
  store.record(run, row_of(four.cells[0], false), 0, {}, 2, {});
  store.record(run, row_of(four.cells[0], false), 1, {}, 4, {});
  store.record(run, row_of(four.cells[1], false), 0, {Ending::Kind::failed, "so"}, 100, {});
  const auto past = past_cells(folder / "r.db", "rank");
  REQUIRE(past.size() == 1);
  CHECK(past[0].method == "performer");
  CHECK((past[0].seconds == 3 && past[0].shape.nk == 16 && past[0].threads == 0));
  CHECK(past_cells(folder / "r.db", "sparsity").empty());
}

TEST_CASE("durations are said in the unit that fits", "[unit]") {
  CHECK(duration_text(0.04) == "40 ms");
  CHECK(duration_text(12) == "12 s");
  CHECK(duration_text(90) == "1.5 min");
  CHECK(duration_text(2.5 * 3600) == "2.5 h");
  CHECK(duration_text(10 * 86400) == "10 days");
}

}  // namespace attnbench::requests_test
