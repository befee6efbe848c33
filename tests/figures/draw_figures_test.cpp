// The points of figures in results files, and the names and looks of series.
#include "harness/figures/draw_figures.hpp"

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>

#include "harness/experiment/experiment.hpp"
#include "harness/figures/looks.hpp"
#include "harness/store/store.hpp"
#include "tests/catch.hpp"
#include "tests/misuse.hpp"
#include "tests/store/results_file.hpp"

namespace attnbench::draw_figures_test {

namespace {

constexpr const char* curve = R"({"panels":[{"kind":"curve","x":["m"],"y":"error","series":["method"]}]})";

// A results file with one figure, and a cell for each method.
void write_results(const std::string& file, const std::vector<std::string>& methods,
                   const std::string& figure = curve) {
  Store store(file);
  const auto run = store.begin_run("test", "{}");
  for (const auto& method : methods) {
    CellRow row = cell(method, 64);
    row.parameters = R"({"m":16})";
    store.record(run, row, 0, {}, 0.1, {scalar("error", 2)});
    store.record(run, row, 1, {}, 0.1, {scalar("error", 4)});
  }
  store.put_figure("recipe", "figure", 0, figure);
}

std::string answer_of(const std::string& file, const std::string& query) {
  SQLite::Database database(file);
  SQLite::Statement select(database, query);
  std::string text;
  while (select.executeStep()) text += (text.empty() ? "" : " ") + select.getColumn(0).getString();
  return text;
}

std::map<std::string, SeriesLook> looks_of(const std::vector<std::string>& methods) {
  const Folder folder;
  const std::string file = folder / "r.db";
  write_results(file, methods);
  const MeasuredResults results(file);
  const DescribedPanel panel = described_panel(nlohmann::json::parse(curve).at("panels").at(0));
  return series_looks(results, panel, drawn_panel(results, panel, better_of).points);
}

}  // namespace

TEST_CASE("a spec is printed with the names that readers know", "[unit]") {
  CHECK(printed_spec("methods", "performer") == "Performer");
  CHECK(printed_spec("methods", "performer:features=trig,projection=iid,m=64") == "Performer, trig., i.i.d., m = 64");
  CHECK(printed_spec("methods", "softmax:cache=false") == "Softmax (exact), no cache");
  CHECK(printed_spec("methods", "combine:[local:window=8],[performer]") ==
        "Combination (Local window, window = 8; Performer)");
  CHECK(printed_spec("methods", "longformer:window=8") == "Longformer, window = 8");
  CHECK(printed_spec("inputs", "gaussian:scale=0.5") == "gaussian, scale = 0.5");
  CHECK(printed_spec("methods", "of-a-plugin:m=3") == "of-a-plugin:m=3");
  CHECK(printed_spec("methods", "performer:no-such=3") == "performer:no-such=3");
}

TEST_CASE("the hue is that of the feature map's family, the marker that of the map, and the line that of the ensemble",
          "[unit]") {
  const auto looks = looks_of({"performer", "performer:projection=iid", "performer:features=trig",
                               "performer:features=hyperbolic", "local:window=8", "longformer", "of-a-plugin"});
  const SeriesLook &plain = looks.at("performer"), &iid = looks.at("performer:projection=iid"),
                   &trig = looks.at("performer:features=trig"), &both = looks.at("performer:features=hyperbolic"),
                   &local = looks.at("local:window=8"), &longformer = looks.at("longformer");
  CHECK(plain.family == "positive");
  CHECK(iid.family == "positive");
  CHECK(trig.family == "trigonometric");
  CHECK(local.family == "sparse");
  CHECK(plain.line == 0);
  CHECK(iid.line != 0);
  CHECK(plain.marker == iid.marker);
  CHECK(plain.marker != both.marker);
  CHECK(plain.shade == 0);  // they give their families the names
  CHECK(trig.shade == 0);
  CHECK(both.shade != 0);
  CHECK(local.family == longformer.family);
  CHECK(local.shade != longformer.shade);
  CHECK(looks.at("of-a-plugin").name == "of-a-plugin");
  CHECK(looks.at("of-a-plugin").family.empty());
}

TEST_CASE("a figure's points are in the file, and drawing again replaces them", "[unit]") {
  const Folder folder;
  const std::string file = folder / "r.db";
  write_results(file, {"performer", "uniform"});
  for (int time = 0; time < 2; ++time) {
    draw_figures(file, better_of);
    CHECK(answer_of(file, "SELECT recipe || figure || panel FROM panel") == "recipefigure1");
    CHECK(answer_of(file, "SELECT series FROM point ORDER BY series") == "performer uniform");
    CHECK(answer_of(file, "SELECT y FROM point") == "3.0 3.0");
    CHECK(answer_of(file, "SELECT DISTINCT theory IS NULL FROM point") == "1");  // NaN
    CHECK(answer_of(file, "SELECT json_extract(json, '$.series.performer.name') FROM panel") == "Performer");
  }
  CHECK(answer_of(file, "SELECT count(*) FROM point") == "2");
}

TEST_CASE("a table has a number for each series, with an interval, and no place along an axis", "[unit]") {
  const Folder folder;
  const std::string file = folder / "r.db";
  write_results(file, {"performer:m=16", "uniform"},
                R"({"panels":[{"kind":"table","x":["m"],"y":"error","series":["method"]}]})");
  {
    Store store(file);
    const auto run = store.begin_run("test", "{}");
    store.record(run, cell("linear"), 0, {}, 0.1, {scalar("error", 1)});
    store.record(run, cell("linear"), 1, {}, 0.1, {scalar("other", 1)});  // the mean of the rest would be biased
  }
  draw_figures(file, better_of);
  CHECK(answer_of(file, "SELECT json_extract(json, '$.notes[0]') FROM panel") ==
        "Linear is not shown: a replicate has no error.");
  CHECK(answer_of(file, "SELECT series || ' ' || y FROM point ORDER BY series") == "performer 3.0 uniform 3.0");
  CHECK(answer_of(file, "SELECT count(*) FROM point WHERE x IS NULL AND low < 3 AND high > 3") == "2");
}

TEST_CASE("a closed form stays in a table where an error could not be estimated", "[unit]") {
  const Folder folder;
  const std::string file = folder / "r.db";
  {
    Store store(file);
    const auto run = store.begin_run("test", "{}");
    store.record(run, cell("performer", 64), 0, {}, 0.1, {scalar("error", 2), scalar("law", 3)});
    store.record(run, cell("performer", 64), 1, {}, 0.1, {scalar("error", 4), scalar("law", 5)});
    store.record(run, cell("linear", 64), 0, {}, 0.1, {scalar("law", 7)});
  }
  const auto panel = described_panel(
      {{"kind", "table"}, {"x", nlohmann::json::array()}, {"y", "error"}, {"theory", "law"}, {"series", {"method"}}});
  const auto drawn = drawn_panel(MeasuredResults(file), panel, better_of);
  REQUIRE(drawn.points.size() == 2);
  CHECK(drawn.points[0].series == "linear");
  CHECK(std::isnan(drawn.points[0].y));
  CHECK(drawn.points[0].theory == 7);
  CHECK(drawn.points[0].note.empty());
  CHECK(drawn.points[1].y == 3);
  CHECK(drawn.points[1].theory == 4);
}

TEST_CASE("the page has the look of every method of a cell, with all of its parameters in the name", "[unit]") {
  const Folder folder;
  const std::string file = folder / "r.db";
  write_results(file, {"performer:m=16", "performer:features=trig,m=16", "of-a-plugin"});
  for (int times = 0; times < 2; ++times) draw_figures(file, better_of);
  const auto look = [&](const std::string& method, const std::string& part) {
    return answer_of(file, "SELECT json_extract(json, '$." + part + "') FROM look WHERE method = '" + method + "'");
  };
  CHECK(answer_of(file, "SELECT count(*) FROM look") == "3");
  CHECK(look("performer:m=16", "name") == "Performer, m = 16");
  CHECK(look("performer:m=16", "family") == "positive");
  CHECK(look("performer:features=trig,m=16", "family") == "trigonometric");
  CHECK(look("of-a-plugin", "name") == "of-a-plugin");
  CHECK(look("of-a-plugin", "family").empty());
}

TEST_CASE("a panel says whether more of its metric is better", "[unit]") {
  for (const auto& [metric, more] : {std::pair("error", 0), std::pair("top_agreement", 1)}) {
    const Folder folder;
    const std::string file = folder / "r.db";
    {
      Store store(file);
      store.record(store.begin_run("test", "{}"), cell("performer", 64), 0, {}, 0.1, {scalar(metric, 0.5)});
      store.put_figure("recipe", "figure", 0,
                       R"({"panels":[{"kind":"curve","x":["n"],"y":")" + std::string(metric) + R"("}]})");
    }
    draw_figures(file, better_of);
    CHECK(answer_of(file, "SELECT json_extract(json, '$.more_is_better') FROM panel") == std::to_string(more));
  }
}

TEST_CASE("the page's numbers of a cell are its mean over replicates and its median over samples", "[unit]") {
  const Folder folder;
  const std::string file = folder / "r.db";
  {
    Store store(file);
    const auto run = store.begin_run("test", "{}");
    store.record(run, cell("softmax"), 0, {}, 0.1, {{"seconds", "s", {3}, {1, 2, 9}}, scalar("error", 2)});
    store.record(run, cell("softmax"), 1, {}, 0.1, {{"seconds", "s", {4}, {3, 4, 5, 6}}, scalar("error", 4)});
    store.record(run, cell("uniform"), 0, {Ending::Kind::crashed, "signal 11"}, 0.1, {});
  }
  draw_figures(file, better_of);
  draw_figures(file, better_of);
  const std::string all =
      "SELECT metric || ' ' || unit || ' ' || mean || ' ' || median || ' ' || replicates || ' ' || ";
  CHECK(answer_of(file, all + "samples FROM summary ORDER BY metric") == "error 1 3.0 3.0 2 2 seconds s 4.25 4.0 2 7");
  // Student's t at one degree of freedom; seven samples have a distribution-free interval from the least to the
  // greatest.
  CHECK(answer_of(file, "SELECT round(high, 4) FROM summary WHERE metric = 'error'") == "15.7062");
  CHECK(answer_of(file, "SELECT median_low || ' ' || median_high FROM summary WHERE metric = 'seconds'") == "1.0 9.0");
}

TEST_CASE("a figure that cannot be drawn is named", "[unit]") {
  for (const char* text :
       {"{", "[]", R"({"panels":[]})", R"({"panels":[{"kind":"curve"}]})", R"({"panels":[{"kind":"pie","y":"error"}]})",
        R"({"panels":[{"kind":"trade","y":"error"}]})", R"({"panels":[{"kind":"map","y":"error","x":["m"]}]})",
        R"({"panels":[{"kind":3,"y":4}]})"}) {
    const Folder folder;
    const std::string file = folder / "r.db";
    write_results(file, {"uniform"}, text);
    INFO(text);
    CHECK(contains(misuse_of([&] { draw_figures(file, better_of); }),
                   "figure recipe/figure is not a figure description"));
  }
}

TEST_CASE("several files are drawn as one, and none of them changes", "[unit]") {
  const Folder folder;
  const std::string a = folder / "a.db", b = folder / "b.db";
  write_results(a, {"performer"});
  write_results(b, {"uniform"});
  const UnitedResults both({a, b}, true);
  draw_figures(both.file(), better_of);
  CHECK(answer_of(both.file(), "SELECT series FROM point ORDER BY series") == "performer uniform");
  CHECK(answer_of(a, "SELECT count(*) FROM point") == "0");
  CHECK(UnitedResults({a}, true).file() == a);
}

TEST_CASE("a figure that a user asks for leaves the results as they are", "[unit]") {
  const Folder folder;
  const std::string file = folder / "r.db", drawn = folder / "drawn.db";
  write_results(file, {"performer"});
  CHECK(draw_figure(file, "asked", curve, drawn, better_of).empty());
  CHECK(answer_of(drawn, "SELECT recipe || ' ' || figure || ' ' || y FROM point") == "plot asked 3.0");
  CHECK(answer_of(file, "SELECT count(*) FROM point") == "0");
  CHECK(answer_of(file, "SELECT name FROM figure") == "figure");
  const std::string other = R"({"panels":[{"kind":"curve","x":["m"],"y":"no-such"}]})";
  CHECK(
      contains(draw_figure(file, "asked", other, folder / "other.db", better_of), "none of the cells (1) has no-such"));
}

}  // namespace attnbench::draw_figures_test
