// The table at the end of a run: which axis it takes, how it prints numbers, and what it says about what is missing.
#include "harness/runner/results_table.hpp"

#include <limits>

#include "tests/catch.hpp"

namespace attnbench::results_table_test {

namespace {

struct Made {
  std::string method;
  std::vector<double> samples;
  nlohmann::json parameters = nlohmann::json::object();
  std::string n = "256", input = "gaussian", d = "64", threads = "0", finished = "2026-01-01T00:00:00Z", unit = "1";
};

CellSamples measured(const Made& made) {
  CellSamples one{.cell = {.values = {"attention-error", made.method, made.input, made.n, made.n, made.d, made.d, "0",
                                      "0", "-1", "f64", "1", "1", "1", made.threads, ""},
                           .parameters = made.parameters},
                  .unit = made.samples.empty() ? "" : made.unit,
                  .samples = made.samples};
  one.replicates = one.done = std::ssize(made.samples);
  one.finished = made.finished;
  return one;
}

std::string table(const std::vector<Made>& cells, TableRoom room = {}, const std::string& metric = "error") {
  std::vector<CellSamples> all;
  for (const Made& made : cells) all.push_back(measured(made));
  return results_table({.experiment = "attention-error", .metric = metric}, all, room);
}

std::string performer(int m) { return m == 64 ? "performer" : "performer:m=" + std::to_string(m); }

std::vector<Made> sweep(const std::vector<int>& values, double of_one) {
  std::vector<Made> cells;
  for (const int m : values)
    cells.push_back({.method = performer(m), .samples = {of_one / m}, .parameters = {{"m", m}}});
  return cells;
}

}  // namespace

TEST_CASE("the columns are the values of the axis that has most, and a method without it is beside them", "[unit]") {
  auto cells = sweep({16, 128, 64}, 8);
  cells.push_back({.method = "uniform", .samples = {0.5}});
  CHECK(table(cells) ==
        "attention-error: error\n"
        "gaussian, n = 256, d = 64; one replicate, so there is no interval (--replicates 8 gives one)\n"
        "           no m   m = 16  m = 64  m = 128\n"
        "performer         0.500   0.125   0.0625\n"
        "uniform    0.500\n");
}

TEST_CASE("what differs beside the axis names the rows", "[unit]") {
  std::vector<Made> cells;
  for (const std::string n : {"128", "256", "1024"})
    for (const std::string input : {"gaussian", "ar1"})
      for (const int m : {16, 64})
        cells.push_back(
            {.method = performer(m), .samples = {m + 0.0}, .parameters = {{"m", m}}, .n = n, .input = input});
  CHECK(table(cells) ==
        "attention-error: error\n"
        "d = 64; one replicate, so there is no interval (--replicates 8 gives one)\n"
        "                          n = 128  n = 256  n = 1024\n"
        "performer:m=16  gaussian  16.0     16.0     16.0\n"
        "performer       gaussian  64.0     64.0     64.0\n"
        "performer:m=16  ar1       16.0     16.0     16.0\n"
        "performer       ar1       64.0     64.0     64.0\n");
}

TEST_CASE("cells that differ in everything have no circumstances in common", "[unit]") {
  const std::string text = table({{.method = "uniform", .samples = {1, 2, 3}, .n = "128", .input = "a", .d = "32"},
                                  {.method = "uniform", .samples = {1, 2, 3}, .n = "256", .input = "b", .d = "64"}});
  CHECK_THAT(text, ContainsSubstring("error\nmean and 95 % interval of 3 replicates\n"));
}

TEST_CASE("a number has the larger half of its 95 % interval: Student's t for means", "[unit]") {
  // Mean 2, standard error 1 / sqrt 3, t_2 = 4.303: the half is 2.48 for samples without skewness.
  const std::string text = table({{.method = "uniform", .samples = {1, 2, 3}}});
  CHECK_THAT(text, ContainsSubstring("uniform  2.00 ±2.5\n"));
  CHECK_THAT(text, ContainsSubstring("mean and 95 % interval of 3 replicates\n"));
}

TEST_CASE("timings are medians of their blocks, in the unit that makes their numbers short", "[unit]") {
  std::vector<double> blocks;
  for (int b = 1; b <= 12; ++b) blocks.push_back(0.001 * b);
  const std::string text = table({{.method = "linear", .samples = blocks, .threads = "1", .unit = "s"}}, {}, "seconds");
  // Of 12 values, the 3rd and the 10th enclose the median of any law with 96 %.
  CHECK_THAT(text, ContainsSubstring("seconds [ms]; less is better\n"));
  CHECK_THAT(text, ContainsSubstring("median and 95 % interval of 12 blocks of turns\n"));
  CHECK_THAT(text, ContainsSubstring("linear  6.50 ±3.5\n"));
  // An interval that reaches farther up than down says so.
  blocks[9] = blocks[10] = 0.012;
  CHECK_THAT(table({{.method = "linear", .samples = blocks, .threads = "1", .unit = "s"}}, {}, "seconds"),
             ContainsSubstring("linear  6.50 +5.5/-3.5\n"));
}

TEST_CASE("cells without a number show how they ended, and a mean over a part of the replicates is marked", "[unit]") {
  std::vector<CellSamples> cells{measured({.method = "a", .samples = {1, 3}}), measured({.method = "b", .samples = {}}),
                                 measured({.method = "c", .samples = {}})};
  cells[0].replicates = 3;  // one crashed
  cells[1].replicates = 2;
  cells[1].ending = "out of memory";
  cells[2].replicates = cells[2].done = cells[2].lacking = 2;
  const std::string text = results_table({.experiment = "rank", .metric = "x"}, cells, {});
  CHECK_THAT(text, ContainsSubstring("a  2.00 ±13*\n"));
  CHECK_THAT(text, ContainsSubstring("b  out of memory\n"));
  CHECK_THAT(text, ContainsSubstring("c  not estimated\n"));
  CHECK_THAT(text, ContainsSubstring("* without the replicates that are not done or could not be estimated"));
}

TEST_CASE("of two versions of one cell the newest counts", "[unit]") {
  const std::string text = table({{.method = "a", .samples = {5}, .finished = "2026-01-02T00:00:00Z"},
                                  {.method = "a", .samples = {7}, .finished = "2026-01-01T00:00:00Z"}});
  CHECK_THAT(text, ContainsSubstring("a  5.00\n"));
  CHECK(text.find("7.00") == std::string::npos);
}

TEST_CASE("a table never exceeds its room, and says which columns and how many rows are cut", "[unit]") {
  auto cells = sweep({2, 4, 8, 16, 32, 64, 128}, 1000);
  for (int i = 0; i < 9; ++i) cells.push_back({.method = "method-" + std::to_string(i), .samples = {1}});
  const std::string text = table(cells, {.width = 50, .rows = 4});
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  std::getline(lines, line);
  std::getline(lines, line);
  CHECK(line.size() <= 50);
  CHECK_THAT(line, ContainsSubstring("no m") && ContainsSubstring("m = 128"));  // both ends
  CHECK_THAT(text, ContainsSubstring("not shown for lack of room: m = ") && ContainsSubstring("--where m=VALUE"));
  CHECK_THAT(text, ContainsSubstring("6 more rows are not shown"));
}

TEST_CASE("infinite means print as such, and a metric that no replicate has gives no table", "[unit]") {
  CHECK_THAT(table({{.method = "a", .samples = {1, std::numeric_limits<double>::infinity()}}}),
             ContainsSubstring("a  inf\n"));
  CellSamples lacking = measured({.method = "a", .samples = {}});
  lacking.replicates = lacking.done = lacking.lacking = 1;
  CHECK(results_table({.experiment = "rank", .metric = "x"}, {lacking}, {}).empty());
  CHECK(results_table({.experiment = "rank", .metric = "x"}, {}, {}).empty());
}

TEST_CASE("emulated half precision, which no spec shows, names its rows", "[unit]") {
  const std::string text =
      table({{.method = "a", .samples = {1}}, {.method = "a", .samples = {2}, .parameters = {{"round", "f16"}}}});
  CHECK_THAT(text, ContainsSubstring("a  round=none  1.00\n"));
  CHECK_THAT(text, ContainsSubstring("a  round=f16   2.00\n"));
}

}  // namespace attnbench::results_table_test
