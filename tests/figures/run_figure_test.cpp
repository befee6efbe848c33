// The figure of a user's runs: no cell of the experiment is lost, for any sweep and any number of runs.
#include "harness/figures/run_figure.hpp"

#include <fmt/format.h>

#include <random>
#include <set>

#include "harness/figures/drawn_panel.hpp"
#include "harness/store/store.hpp"
#include "tests/catch.hpp"
#include "tests/store/results_file.hpp"

namespace attnbench::run_figure_test {
using nlohmann::json;

namespace {

const json stored = json::parse(R"({"title": "Errors", "panels": [{"title": "", "kind": "curve", "x": ["n"],
  "y": "error", "y_label": "error of the kernel", "interval": "mean", "series": ["method"],
  "where": {"experiment": "kernel-error"}}]})");

// A results file of cells that differ in method, input, n and parameters. Every cell has two replicates.
class Runs {
 public:
  void add(const std::string& method, const std::string& input, const json& parameters, Index n = 64,
           double value = 1) {
    CellRow row = cell(method, n);
    row.input = input;
    row.parameters = parameters.dump();
    row.key = fmt::format("cell {}", count_++);
    for (const Index replicate : {0, 1})
      store_.record(run_, row, replicate, {}, 0.1, {scalar("error", value + static_cast<double>(replicate))});
  }
  size_t cells() const { return count_; }
  MeasuredResults results() const { return MeasuredResults(file_); }

 private:
  const Folder folder_;
  const std::string file_ = folder_ / "r.db";
  Store store_{file_};
  std::int64_t run_ = store_.begin_run("test", "{}");
  size_t count_ = 0;
};

const json& only_panel(const json& figure) {
  REQUIRE(figure.at("panels").size() == 1);
  return figure.at("panels").at(0);
}

struct Drawn {
  size_t points = 0, replicates = 0;
  std::vector<std::string> notes;
};

Drawn drawn(const Runs& runs, const json& figure) {
  const MeasuredResults results = runs.results();
  Drawn all;
  for (const auto& panel : figure.at("panels")) {
    const DrawnPanel one = drawn_panel(results, described_panel(panel), better_by_unit);
    for (const DrawnPoint& point : one.points) all.replicates += static_cast<size_t>(point.replicates);
    all.points += one.points.size();
    for (const std::string& note : one.notes)
      if (!note.starts_with("Without ")) all.notes.push_back(note);  // which curves are levels
  }
  return all;
}

void check_nothing_is_lost(const Runs& runs) {
  const json figure = figure_of_cells(runs.results(), stored);
  const Drawn all = drawn(runs, figure);
  INFO(figure.dump(1));
  CHECK(all.points == runs.cells());  // so no two cells share a point
  CHECK(all.replicates == 2 * runs.cells());
  CHECK(all.notes.empty());
}

}  // namespace

TEST_CASE("the size or parameter with most numbers is along x, on a logarithmic axis if it spans one", "[unit]") {
  Runs runs;
  for (const int m : {4, 16, 64})
    for (const Index n : {64, 128}) runs.add(fmt::format("performer:m={}", m), "gaussian", {{"m", m}}, n, 100.0 / m);
  const json figure = figure_of_cells(runs.results(), stored);
  const json& panel = only_panel(figure);
  CHECK(panel.at("x") == json{"m"});
  CHECK(panel.at("x_scale") == "log2");
  CHECK(panel.at("y_scale") == "log10");
  CHECK(panel.at("series") == json{"method", "n"});
  CHECK(panel.at("y_label") == "error of the kernel");
  CHECK(panel.at("cells").size() == 6);
  CHECK(figure.at("title") == "Errors");
  check_nothing_is_lost(runs);
}

TEST_CASE("layers from 0 are on a linear axis, and heads are curves or panels", "[unit]") {
  Runs runs;
  for (const std::string method : {"performer", "local", "uniform"})
    for (int layer = 0; layer < 4; ++layer)
      for (int head = 0; head < 3; ++head)
        runs.add(method, fmt::format("model:layer={},head={}", layer, head), {{"layer", layer}, {"head", head}});
  const json figure = figure_of_cells(runs.results(), stored);
  REQUIRE(figure.at("panels").size() == 3);  // nine curves are more than a panel's colours
  for (size_t head = 0; head < 3; ++head) {
    const json& panel = figure.at("panels").at(head);
    CHECK(panel.at("x") == json{"layer"});
    CHECK(panel.at("x_scale") == "linear");
    CHECK(panel.at("title").get<std::string>().ends_with(fmt::format("head = {}", head)));
    CHECK(panel.at("cells").size() == 12);
  }
  check_nothing_is_lost(runs);
}

TEST_CASE("a word is no axis: it is a part of the curve's name, once", "[unit]") {
  Runs runs;
  for (const std::string features : {"positive", "trig"})
    for (const int m : {16, 32})
      runs.add(fmt::format("performer:features={},m={}", features, m), "gaussian", {{"features", features}, {"m", m}});
  const json figure = figure_of_cells(runs.results(), stored);
  CHECK(only_panel(figure).at("x") == json{"m"});
  CHECK(only_panel(figure).at("series") == json{"method"});
  check_nothing_is_lost(runs);
}

TEST_CASE("a column of words and numbers is no axis", "[unit]") {
  Runs runs;
  for (const std::string size : {"8", "16", "32", "all"})
    for (const int m : {16, 32})
      runs.add(fmt::format("nystrom:m={},size={}", m, size), "gaussian", {{"m", m}, {"size", size}});
  CHECK(only_panel(figure_of_cells(runs.results(), stored)).at("x") == json{"m"});
  check_nothing_is_lost(runs);
}

TEST_CASE("a second run on another input adds a panel, and one with another method a curve", "[unit]") {
  Runs runs;
  for (const int m : {16, 32}) runs.add(fmt::format("performer:m={}", m), "gaussian", {{"m", m}});
  const json first = figure_of_cells(runs.results(), stored);
  CHECK(first.at("panels").size() == 1);
  for (const int m : {16, 32}) runs.add(fmt::format("performer:m={}", m), "ar1", {{"m", m}});
  runs.add("local:window=8", "gaussian", {{"window", 8}});
  const json second = figure_of_cells(runs.results(), first);
  REQUIRE(second.at("panels").size() == 2);
  CHECK(second.at("panels").at(1).at("references") == json{"local:window=8"});  // a level: it has no m
  check_nothing_is_lost(runs);
}

TEST_CASE("a budget that moves with n does not make a curve of every cell", "[unit]") {
  Runs runs;
  for (const Index n : {64, 128, 256}) runs.add(fmt::format("performer:m={}", n / 4), "gaussian", {{"m", n / 4}}, n);
  const json figure = figure_of_cells(runs.results(), stored);
  CHECK(only_panel(figure).at("x") == json({"n", "m"}));
  const MeasuredResults results = runs.results();
  for (const DrawnPoint& point : drawn_panel(results, described_panel(only_panel(figure)), better_by_unit).points)
    CHECK(point.series == "performer");
  check_nothing_is_lost(runs);
}

TEST_CASE("of a file without cells of the experiment, the figure stays as it is stored", "[unit]") {
  const Runs runs;
  CHECK(figure_of_cells(runs.results(), stored) == stored);
}

// Random runs of some methods on some inputs, with some sizes and parameters swept.
TEST_CASE("for any sweep, every cell is one point of one panel", "[unit]") {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 generator(seed);
    const auto below = [&](int end) { return std::uniform_int_distribution<int>(0, end - 1)(generator); };
    Runs runs;
    std::set<std::string> cells;
    const int requests = 1 + below(3);
    for (int request = 0; request < requests; ++request) {
      const bool swept_m = below(2), swept_n = below(2), words = below(2), layers = below(2), scales = below(2);
      for (const std::string method : {"performer", "local", "uniform"}) {
        if (below(3) == 0) continue;
        const bool performer = method == "performer";
        const auto ms = swept_m && performer ? std::vector{8, 32, 128} : std::vector{64};
        const auto maps = words && performer ? std::vector{"positive", "trig"} : std::vector{"trig"};
        const auto sizes = swept_n ? std::vector<Index>{32, 64, 128, 256} : std::vector<Index>{48};
        for (const int m : ms)
          for (const std::string features : maps)
            for (const Index n : sizes)
              for (int layer = 0; layer < (layers ? 3 : 1); ++layer)
                for (const double scale : scales ? std::vector{0.5, 1.0} : std::vector{1.0}) {
                  json parameters{{"layer", layer}, {"scale", scale}};
                  std::string spec = method;
                  if (performer) {
                    parameters.update({{"m", m}, {"features", features}});
                    spec += fmt::format(":features={},m={}", features, m);
                  }
                  const std::string input = fmt::format("model:layer={},scale={}", layer, scale);
                  if (cells.insert(fmt::format("{} {} {}", spec, input, n)).second)
                    runs.add(spec, input, parameters, n, 1 + below(50));
                }
      }
    }
    if (runs.cells() == 0) continue;
    INFO("seed " << seed);
    check_nothing_is_lost(runs);
  }
}

}  // namespace attnbench::run_figure_test
