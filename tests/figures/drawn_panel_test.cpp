// The numbers that figures draw, of results files with known ones.
#include "harness/figures/drawn_panel.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <set>

#include "harness/figures/looks.hpp"
#include "harness/statistics/moments.hpp"
#include "harness/store/store.hpp"
#include "tests/catch.hpp"
#include "tests/store/results_file.hpp"

namespace attnbench::drawn_panel_test {
using Catch::Detail::Approx;

namespace {

// A results file with cells of one experiment.
class Results {
 public:
  Results() : store_(file()), run_(store_.begin_run("test", "{}")) {}

  // numbers: of the metric "error", one a replicate
  void add(const std::string& method, double m, const std::vector<double>& numbers, Index n = 64) {
    for (size_t r = 0; r < numbers.size(); ++r)
      record(method, m, n, static_cast<Index>(r), {scalar("error", numbers[r])});
  }
  void record(const std::string& method, double m, Index n, Index replicate, const std::vector<Measurement>& measured,
              const Ending& ending = {}) {
    CellRow row = cell(method, n);
    row.parameters = m > 0 ? fmt::format(R"({{"m":{}}})", m) : "{}";
    store_.record(run_, row, replicate, ending, 0.1, measured);
  }
  std::string file() const { return folder_ / "r.db"; }

  DrawnPanel drawn(nlohmann::json description) {
    description.emplace("kind", "curve");
    description.emplace("x", "m");
    description.emplace("y", "error");
    return drawn_panel(MeasuredResults(file()), described_panel(description), better_by_unit);
  }

 private:
  Folder folder_;
  Store store_;
  std::int64_t run_;
};

DrawnPoint at(const DrawnPanel& panel, const std::string& series, double x) {
  const auto found = std::find_if(panel.points.begin(), panel.points.end(), [&](const DrawnPoint& point) {
    return point.series == series && (point.x == x || (std::isnan(x) && std::isnan(point.x)));
  });
  REQUIRE(found != panel.points.end());
  return *found;
}

using Sentences = std::vector<std::string>;

}  // namespace

TEST_CASE("a point is the mean over replicates with Student's interval, and a series has no swept parameter",
          "[unit]") {
  Results results;
  results.add("performer:m=16", 16, {1, 3});
  results.add("performer", 256, {2});
  const DrawnPanel panel = results.drawn({});
  CHECK(panel.points.size() == 2);
  const DrawnPoint& point = at(panel, "performer", 16);
  CHECK(point.role == "measured");
  CHECK(point.y == 2);
  CHECK(point.replicates == 2);
  // t = 12.706 at one degree of freedom; the standard error of 1 and 3 is 1.
  CHECK(point.low == Approx(2 - 12.7062).epsilon(1e-4));
  CHECK(point.high == Approx(2 + 12.7062).epsilon(1e-4));
  CHECK(at(panel, "performer", 256).y == 2);
  CHECK(std::isnan(at(panel, "performer", 256).low));
  CHECK(panel.notes.empty());
  CHECK(panel.missing.empty());
}

TEST_CASE("medians take all samples of a replicate, and have an interval from six samples on", "[unit]") {
  Results results;
  results.record("performer:m=16", 16, 64, 0, {{"error", "s", {3}, {5, 1, 9}}});
  results.record("performer:m=16", 16, 64, 1, {{"error", "s", {3}, {2, 4, 3}}});
  const DrawnPanel panel = results.drawn({{"interval", "median"}});
  const DrawnPoint& point = at(panel, "performer", 16);
  CHECK(point.y == 3.5);
  CHECK(point.low == 1);
  CHECK(point.high == 9);
  CHECK(point.samples == 6);
  CHECK(panel.unit == "s");
}

TEST_CASE("a method without the axis is a level where the panel names it, and otherwise a sentence", "[unit]") {
  Results results;
  results.add("performer:m=16", 16, {1});
  results.add("uniform", 0, {7});
  const DrawnPanel named = results.drawn({{"references", {"uniform"}}});
  CHECK(at(named, "uniform", NAN).role == "reference");
  CHECK(at(named, "uniform", NAN).y == 7);
  const DrawnPanel unnamed = results.drawn({});
  CHECK(unnamed.points.size() == 1);
  CHECK(unnamed.notes == Sentences{"Not drawn, no number for m: uniform."});
  CHECK(results.drawn({{"references", {"softmax"}}}).notes ==
        Sentences{"Not drawn, no number for m: uniform.", "No data for the reference Softmax (exact)."});
}

TEST_CASE("a ratio is taken replicate by replicate, and its centre is the geometric mean", "[unit]") {
  Results results;
  results.add("performer:m=16", 16, {2, 32});
  results.add("uniform", 0, {1, 2});
  const DrawnPanel panel = results.drawn({{"ratio_to", "uniform"}});
  CHECK(at(panel, "performer", 16).y == Approx(std::sqrt(2.0 * 16)));
  CHECK(panel.points.size() == 1);
  Results lacking;
  lacking.add("performer:m=16", 16, {2, 32});
  lacking.add("uniform", 0, {1});
  const DrawnPanel without = lacking.drawn({{"ratio_to", "uniform"}});
  CHECK(without.points.empty());
  CHECK(without.notes == Sentences{"1 point of Performer not drawn: a replicate has no ratio to uniform."});
}

TEST_CASE("a ratio that is not above 0 is a gap", "[unit]") {
  Results results;
  results.add("performer:m=16", 16, {2, -32});
  results.add("performer:m=32", 32, {2, 4});
  results.add("uniform", 0, {1, 2});
  const DrawnPanel panel = results.drawn({{"ratio_to", "uniform"}});
  CHECK(panel.points.size() == 1);
  CHECK(at(panel, "performer", 32).y == Approx(2));
  CHECK(panel.notes == Sentences{"1 point of Performer not drawn: a replicate has no ratio to uniform."});
}

TEST_CASE("a replicate that lacks the metric takes its point away, and says so; a closed form stays", "[unit]") {
  Results results;
  results.add("performer:m=16", 16, {1});
  results.record("performer:m=16", 16, 64, 1, {scalar("other", 3), scalar("law", 5)});
  const DrawnPanel panel = results.drawn({});
  CHECK(panel.points.empty());
  CHECK(panel.notes == Sentences{"1 point of Performer not drawn: a replicate has no error."});
  const DrawnPoint& point = at(results.drawn({{"theory", "law"}}), "performer", 16);
  CHECK(std::isnan(point.y));
  CHECK(point.theory == 5);
  CHECK(point.replicates == 1);
}

TEST_CASE("the exponent of a square is 2, and the crossing of x / 100 lies at 100", "[unit]") {
  Results results;
  for (const int m : {16, 64, 256, 1024})
    results.add(m == 256 ? "performer" : fmt::format("performer:m={}", m), m, {1e-4 * m * m, 2e-4 * m * m});
  const DrawnPoint& point = at(results.drawn({{"slope", true}}), "performer", 16);
  CHECK(point.exponent == Approx(2));
  const DrawnPoint& crossing = at(results.drawn({{"crossing", true}}), "performer", 1024);
  CHECK(crossing.crossing == Approx((100 + 100 / std::sqrt(2.0)) / 2));
}

TEST_CASE("exponents are those of the last three points", "[unit]") {
  Results results;
  for (const int m : {16, 32, 64, 128})
    results.add(fmt::format("performer:m={}", m), m, {m == 16 ? 1000.0 : std::pow(m, 3), m == 16 ? 1000.0 : 1.0 * m});
  CHECK(at(results.drawn({{"slope", true}}), "performer", 16).exponent == Approx(2));  // the mean of 3 and 1
}

TEST_CASE("a crossing is the median of those of the samples", "[unit]") {
  Results results;  // samples cross 1 at 32, 64 and 512: their power laws are x / 32, x / 64 and x / 512
  for (const int m : {16, 64, 256, 1024})
    results.add(m == 256 ? "performer" : fmt::format("performer:m={}", m), m, {m / 32.0, m / 64.0, m / 512.0});
  CHECK(at(results.drawn({{"crossing", true}}), "performer", 16).crossing == Approx(64));
}

TEST_CASE("a curve that is at one from the start crosses at 0, and one that ends below never does", "[unit]") {
  Results results;
  for (const int m : {16, 32, 64}) {
    results.add(fmt::format("performer:m={}", m), m, {m / 16.0});
    results.add(fmt::format("linear:m={}", m), m, {m == 64 ? 0.5 : 2});
    results.add(fmt::format("local:m={}", m), m, {m == 16 || m == 64 ? 2 : 0.5});  // the last rise counts
  }
  const DrawnPanel panel = results.drawn({{"crossing", true}});
  CHECK(at(panel, "performer", 16).crossing == 0);
  CHECK(at(panel, "linear", 16).crossing == HUGE_VAL);
  CHECK(at(panel, "local", 16).crossing == Approx(32 * std::sqrt(2.0)));
}

TEST_CASE("timings of two machines are two curves", "[unit]") {
  Folder folder;
  Store store(folder / "r.db");
  const auto run = store.begin_run("test", "{}");
  for (const std::string machine : {"here", "there"}) {
    CellRow row = cell("performer:m=16");
    row.machine = machine;
    row.key = machine;
    row.parameters = R"({"m":16})";
    store.record(run, row, 0, {}, 0.1, {scalar("error", machine == "here" ? 1 : 3)});
  }
  const nlohmann::json curve{{"kind", "curve"}, {"x", "m"}, {"y", "error"}};
  const DrawnPanel panel = drawn_panel(MeasuredResults(folder / "r.db"), described_panel(curve), better_by_unit);
  CHECK(at(panel, "performer on here", 16).y == 1);
  CHECK(at(panel, "performer on there", 16).y == 3);
}

TEST_CASE("points that the axes cannot show are named, and so are cells that were not done", "[unit]") {
  Results results;
  results.add("performer:m=16", 16, {0});
  results.add("performer:m=64", 64, {2});
  results.record("performer", 256, 64, 0, {}, {Ending::Kind::crashed, "signal 11"});
  const DrawnPanel panel = results.drawn({{"y_scale", "log10"}});
  CHECK(at(panel, "performer", 16).note == "not positive on a log axis");
  CHECK(at(panel, "performer", 64).note.empty());
  CHECK(at(panel, "performer", 256).role == "ending");
  CHECK(at(panel, "performer", 256).note == "crashed: signal 11");
  CHECK(panel.notes == Sentences{"1 point not drawn: not positive on a log axis."});
}

TEST_CASE("conditions select cells, and what a point pools is said", "[unit]") {
  Results results;
  results.add("performer:m=16", 16, {1}, 64);
  results.add("performer:m=16", 16, {3}, 128);
  const DrawnPanel pooled = results.drawn({});
  CHECK(at(pooled, "performer", 16).y == 2);
  CHECK(pooled.notes == Sentences{"Each point pools cells that differ in n, nq."});
  CHECK(at(results.drawn({{"where", {{"n", 128}}}}), "performer", 16).y == 3);
  CHECK(at(results.drawn({{"where", {{"n", {64, 128}}}}}), "performer", 16).y == 2);
  CHECK(at(results.drawn({{"series", {"method", "n"}}}), "performer n=128", 16).y == 3);
  CHECK(results.drawn({{"where", {{"n", 1}}}}).missing == "no data: no cell of the results meets the conditions");
  CHECK(results.drawn({{"y", "rank"}}).missing == "no data: none of the cells (2) has rank; they have error");
}

TEST_CASE("a tile shows the value, the ratio of two methods, or the method with the least value", "[unit]") {
  Results results;
  results.add("performer:m=16", 16, {1, 1});
  results.add("linear:m=16", 16, {10, 1000});
  const nlohmann::json map{{"kind", "map"}, {"x", {"m"}}, {"y_axis", {"n"}}};
  const auto with = [&](const char* name, const nlohmann::json& value) {
    nlohmann::json all = map;
    all[name] = value;
    return results.drawn(all);
  };
  const DrawnPoint ratio = with("ratio", {"linear", "performer"}).points.at(0);
  CHECK(ratio.role == "ratio");
  CHECK(ratio.value == Approx(2));  // log10 of 10 and of 1000
  CHECK(ratio.x == 16);
  CHECK(ratio.y == 64);
  const DrawnPoint winner = with("winner", true).points.at(0);
  CHECK(winner.series == "performer");
  CHECK(winner.value == Approx(2));
  CHECK(with("where", {{"method", "performer"}}).points.at(0).value == 1);
}

TEST_CASE("a profile has a point for each place of an array, a histogram the share in each bin", "[unit]") {
  Results results;
  results.record("performer:m=16", 16, 64, 0, {{"error", "1", {2}, {1, 10}}});
  results.record("performer:m=16", 16, 64, 1, {{"error", "1", {2}, {3, 30}}});
  const DrawnPanel profile = results.drawn({{"kind", "profile"}, {"x", nlohmann::json::array()}, {"first_index", 0}});
  CHECK(at(profile, "performer:m=16", 0).y == 2);
  CHECK(at(profile, "performer:m=16", 1).y == 20);
  const DrawnPanel shares = results.drawn({{"kind", "histogram"}, {"x", nlohmann::json::array()}, {"range", {0, 20}}});
  CHECK(shares.points.size() == 40);
  double sum = 0;
  for (const DrawnPoint& bin : shares.points) sum += bin.y;
  CHECK(sum == Approx(0.75));
  CHECK(at(shares, "performer:m=16", 1.25).y == 0.25);  // of 1, in the bin from 1 to 1.5
  CHECK(shares.notes == Sentences{"1 of 4 values lie beyond the axis."});
  results.record("linear:m=16", 16, 64, 0, {{"error", "1", {2}, {5, 6}}, {"steps", "1", {2}, {25, 100}}});
  const DrawnPanel by_steps =
      results.drawn({{"kind", "profile"}, {"x", nlohmann::json::array()}, {"x_metric", "steps"}});
  CHECK(by_steps.points.size() == 2);
  CHECK(at(by_steps, "linear:m=16", 100).y == 6);
  CHECK(by_steps.notes == Sentences{"Not drawn: 2 replicates without as many steps as error."});
}

TEST_CASE("a trade sets the geometric mean against the median, and names what lies beyond", "[unit]") {
  Results results;
  for (const Index r : {0, 1, 2}) {
    results.record("performer:m=16", 16, 64, r,
                   {scalar("error", r == 0 ? 1 : 8), scalar("seconds", r == 2 ? 9 : 1.0 + static_cast<double>(r))});
    results.record("linear:m=16", 16, 64, r, {scalar("error", 500), scalar("seconds", 2)});
    results.record("softmax", 0, 64, r, {scalar("error", 0), scalar("seconds", 5)});
  }
  const DrawnPanel panel =
      results.drawn({{"kind", "trade"}, {"x", nlohmann::json::array()}, {"x_metric", "seconds"}, {"y_most", 100}});
  CHECK(at(panel, "performer:m=16", 2).y == Approx(4));
  CHECK(at(panel, "linear:m=16", 2).note == "above 100");
  CHECK(at(panel, "softmax", 5).role == "reference");
  CHECK(std::isnan(at(panel, "softmax", 5).y));
  CHECK(panel.notes == Sentences{"Beyond the axes: linear:m=16 (5e+02)."});
}

TEST_CASE("of cells that differ in their source version the one that was measured last is drawn", "[unit]") {
  Folder folder;
  Store store(folder / "r.db");
  const auto run = store.begin_run("test", "{}");
  for (const std::string version : {"a", "b"}) {
    CellRow row = cell("performer:m=16");
    row.key = version;
    row.source_version = version;
    row.parameters = R"({"m":16})";
    store.record(run, row, 0, {}, 0.1, {scalar("error", version == "a" ? 1 : 2)});
  }
  const MeasuredResults results(folder / "r.db");
  CHECK(results.cells().size() == 1);
  CHECK(results.positions({"a", "b", "c"}) == std::vector<size_t>{0});
  CHECK(results.values(0, "error").at(0).values == std::vector<double>{2});
}

TEST_CASE("a spec loses the parameters of the axes, and its parts lose them as well", "[unit]") {
  CHECK(without_parameters("performer:m=64,features=trig", {"m"}) == "performer:features=trig");
  CHECK(without_parameters("combine:[local:window=8],[performer:m=16]", {"window", "m"}) == "combine:local,performer");
  CHECK(without_parameters("quantised:base=[performer:m=16]", {"m"}) == "quantised:base=performer:m=16");
  CHECK(without_parameters("not a [spec", {"m"}) == "not a [spec");
}

// The 200 stores are fixed by their seeds, so a number that one of them loses is lost in every run.
TEST_CASE("every number of a random sweep is in exactly one point, or in a sentence about what is not drawn",
          "[unit]") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto one_in = [&](unsigned count) { return random() % count == 0; };
    Results results;
    std::map<std::pair<std::string, double>, std::vector<double>> drawn;  // by series and x
    std::set<std::pair<std::string, double>> lacking;
    std::set<std::string> without_axis;
    for (const std::string method : {"performer", "linear", "vq", "uniform"})
      for (const int m : {8, 16, 32, 64}) {
        if (one_in(3)) continue;
        const bool axis = method != "uniform";
        for (Index r = 0; r < 3; ++r) {
          const double number = 1 + static_cast<double>(random() % 1000);
          const std::string spec = axis ? fmt::format("{}:m={}", method, m) : method;
          if (one_in(6)) {
            results.record(spec, axis ? m : 0, axis ? 64 : m, r, {scalar("another", number)});
            if (axis) lacking.emplace(method, m);
          } else {
            results.record(spec, axis ? m : 0, axis ? 64 : m, r, {scalar("error", number)});
            if (axis) drawn[{method, m}].push_back(number);
          }
          if (!axis) without_axis.insert(method);
        }
      }
    const DrawnPanel panel = results.drawn({});
    INFO("seed " << seed);
    std::erase_if(drawn, [&](const auto& point) { return lacking.contains(point.first); });
    REQUIRE(panel.points.size() == drawn.size());
    for (const auto& [place, numbers] : drawn) {
      const DrawnPoint point = at(panel, place.first, place.second);
      CHECK(point.replicates == std::ssize(numbers));
      CHECK(point.y == Approx(moments(numbers).mean));
    }
    Sentences said;
    if (!without_axis.empty()) said.push_back("Not drawn, no number for m: uniform.");
    std::set<std::string> names;
    for (const auto& [method, m] : lacking) names.insert(printed_spec("methods", method));
    if (!lacking.empty())
      said.push_back(fmt::format("{} point{} of {} not drawn: a replicate has no error.", lacking.size(),
                                 lacking.size() == 1 ? "" : "s", fmt::join(names, "; ")));
    CHECK(panel.notes == said);
  }
}

}  // namespace attnbench::drawn_panel_test
