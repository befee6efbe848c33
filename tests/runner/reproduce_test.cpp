// Recipes varied by seed and setting, and what the command refuses.
#include "harness/runner/reproduce.hpp"

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Database.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/cli/command.hpp"
#include "harness/experiment/cell_row.hpp"
#include "harness/store/store.hpp"
#include "tests/folder.hpp"
#include "tests/misuse.hpp"

namespace attnbench::reproduce_test {
namespace fs = std::filesystem;

namespace {

constexpr Index replicates = 3;

// iid vectors are stated, so that no setting changes them; m and the input's scale are left as they are by default.
const std::string iid = "performer:projection=iid";

void write(Recipe& recipe) {
  const Cells all = recipe.run({.experiment = "kernel-error:draws=64,pairs=2",
                                .methods = {iid, "linear"},
                                .inputs = {"gaussian", "gaussian:scale=0.25"},
                                .n = {8},
                                .d = {4},
                                .replicates = replicates});
  recipe.figure("f", "title", "caption",
                {{.title = "panel", .cells = all.input("gaussian"), .y = "relative_bias", .ratio_to = iid}});
  // HOLDS with one half of all seeds and REFUTED with the other, as a verdict on nothing would be.
  const Cells cell = all.method(iid).input("gaussian");
  recipe.judge({.statement = {.text = "the first bias is below 0"},
                .numbers = {{.samples = [=] { return Samples{*cell.scalar("relative_bias").begin()}; }}},
                .rule = below(0),
                .take = Take::exact});
  recipe.judge({.statement = {.text = "there are replicates", .source = "counting"},
                .numbers = {{.samples =
                                 [=] {
                                   return Samples{{0, static_cast<double>(cell.scalar("relative_bias").size())}};
                                 }}},
                .rule = above(0),
                .take = Take::exact});
}

const RecipeEntry recipe{.text = {.name = "coin"}, .write = write};

Reproduction reproduced(Store& store, const Variation& variation, RunSummary& total) {
  return *reproduce(recipe, RecipeSize::smoke, variation, store, store.begin_run("test", "{}"), total);
}

std::string misuse(std::vector<std::string> words) {
  return misuse_of([&] { find<CommandEntry>("reproduce").run(words); });
}

}  // namespace

TEST_CASE("settings change what a recipe leaves at its default, and nothing that it states", "[unit]") {
  const auto cells_with = [](const std::vector<Setting>& settings) {
    return written(recipe, RecipeSize::smoke, settings)->cells().all();
  };
  const auto as_it_is = cells_with({});
  CHECK(std::all_of(as_it_is.begin(), as_it_is.end(), [](const RecipeCell& cell) {
    return row_of(cell.asked, false).key == row_of(cell.run, false).key;
  }));
  const auto cells = cells_with({{"scale", "0.7"}, {"m", "8"}, {"projection", "simplex"}, {"draws", "128"}});
  REQUIRE(cells.size() == 4);
  for (const RecipeCell& cell : cells) {
    const bool stated = cell.asked.input.text("scale") != "1";
    CHECK(cell.run.input.text("scale") == (stated ? "0.25" : "0.7"));
    CHECK(cell.run.experiment.text("draws") == "64");
    if (cell.run.method.name() != "performer") continue;
    CHECK(cell.run.method.text("m") == "8");
    CHECK(cell.run.method.text("projection") == "iid");
  }
  CHECK_FALSE(misuse_of([&] { cells_with({{"scale", "wide"}}); }).empty());
}

TEST_CASE("a setting that changes no cell is known as such", "[unit]") {
  const auto cells = written(recipe, RecipeSize::smoke)->cells().all();
  const auto none =
      without_effect({{"scale", "0.7"}, {"projection", "simplex"}, {"window", "3"}, {"scale", "1"}}, cells);
  REQUIRE(none.size() == 3);
  CHECK(none[0].name == "projection");  // stated
  CHECK(none[1].name == "window");      // nothing has it
  CHECK(none[2].value == "1");          // as it is
}

TEST_CASE("a verdict that flips with the seed is ambiguous, and its cells are those of all seeds", "[unit]") {
  const Folder folder;
  Store store(folder / "r.db");
  RunSummary total;
  const Reproduction once = reproduced(store, {}, total);
  CHECK(total.ran == 4 * replicates);
  CHECK(once.cells.size() == 4);
  CHECK(once.size == "smoke");
  CHECK(once.command == "attnbench reproduce coin --smoke");
  CHECK(once.verdicts[1].statement.source == "counting");
  CHECK(once.verdicts[0].finding.ruling != Ruling::open);

  total = {};
  const Reproduction often = reproduced(store, {.seeds = 12}, total);  // alike by chance: 2^-11
  CHECK(total.already == 4 * replicates);
  CHECK(total.ran == 11 * 4 * replicates);
  CHECK(often.cells.size() == 12 * 4);
  CHECK(often.command == "attnbench reproduce coin --smoke --seeds 12");
  CHECK(often.verdicts[0].finding.ruling == Ruling::open);
  CHECK(often.verdicts[1].finding.ruling == Ruling::holds);
}

TEST_CASE("a forecast is of what is missing, once for all recipes and again for every seed", "[unit]") {
  const Folder folder;
  const std::string file = folder / "r.db";
  Store store(file);
  const auto seconds = [&](const std::vector<const RecipeEntry*>& recipes, const Variation& variation) {
    return forecast(recipes, RecipeSize::smoke, variation, store, file).total.seconds;
  };
  const double once = seconds({&recipe}, {}), thrice = seconds({&recipe}, {.seeds = 3});
  CHECK(once > 0);
  CHECK(seconds({&recipe, &recipe}, {}) == once);   // the same cells
  CHECK(thrice == Approx(3 * once).epsilon(1e-6));  // other cells of equal cost
  CHECK_FALSE(forecast({&recipe}, RecipeSize::smoke, {}, store, file).total.by_past);
  RunSummary total;
  reproduced(store, {}, total);
  CHECK(seconds({&recipe}, {}) == 0);
  const Forecast others = forecast({&recipe}, RecipeSize::smoke, {.seeds = 3}, store, file);
  REQUIRE(others.parts.size() == 1);
  CHECK(others.parts[0].units == 2 * 4 * replicates);  // of the second and the third seed
  CHECK(others.total.seconds == Approx(2 * seconds({&recipe}, {.seeds = 2})).epsilon(1e-6));
  CHECK(others.total.by_past);  // cells of the first seed correct it
}

TEST_CASE("with a setting a recipe judges, and draws, the cells that were run with it", "[unit]") {
  const Folder folder;
  Store store(folder / "r.db");
  RunSummary total;
  const Reproduction plain = reproduced(store, {}, total),
                     varied = reproduced(store, {.settings = {{"m", "8"}}}, total);
  CHECK(varied.command == "attnbench reproduce coin --smoke --set m=8");
  CHECK(varied.cells.size() == 4);
  CHECK(varied.cells != plain.cells);
  CHECK(varied.verdicts[0].finding.numbers != plain.verdicts[0].finding.numbers);
  SQLite::Database reader(folder / "r.db");
  const auto drawn = nlohmann::json::parse(reader.execAndGet("SELECT json FROM figure WHERE name = 'f'").getString());
  const auto& panel = drawn["panels"][0];
  REQUIRE(panel["cells"].size() == 2);
  for (const auto& key : panel["cells"])
    CHECK(std::find(varied.cells.begin(), varied.cells.end(), key) != varied.cells.end());
  CHECK(panel["ratio_to"] == "performer:m=8,projection=iid");
}

TEST_CASE("attnbench reproduce says what is wrong with its arguments", "[unit]") {
  const Folder folder;
  std::ofstream(folder / "file") << "x";
  const std::string results = folder / "r.db";
  CHECK_THAT(misuse({"--set", "foo"}), ContainsSubstring("--set foo: expected NAME=VALUE"));
  CHECK_THAT(misuse({"sign-fix", "--set", "foo=1"}), ContainsSubstring("--set foo=1 changes nothing"));
  CHECK_THAT(misuse({"sign-fix", "--set", "features=none", "--results", results}), ContainsSubstring("none"));
  CHECK_THAT(misuse({"--seeds", "0"}), ContainsSubstring("--seeds 0: expected 1 to"));
  CHECK_THAT(misuse({"--smoke", "--full"}), ContainsSubstring("exclude each other"));
  CHECK_THAT(misuse({"--smoke", "--strict"}), ContainsSubstring("those of --smoke have no meaning"));
  CHECK_THAT(misuse({"--timed", "--untimed"}), ContainsSubstring("exclude each other"));
  CHECK_THAT(misuse({"sign-fix", "--timed"}), ContainsSubstring("none of these recipes is timed"));
  CHECK_THAT(misuse({"sign-fxi"}), ContainsSubstring("sign-fxi"));
  CHECK_THAT(misuse({"sign-fix", "--smoke", "--results", results, "-o", folder / "file/x"}),
             ContainsSubstring("file/x"));
  CHECK_FALSE(fs::exists(results));  // nothing has run
}

}  // namespace attnbench::reproduce_test
