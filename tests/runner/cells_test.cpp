// The handle of a recipe's cells: what it selects, and what it reads.
#include "harness/runner/cells.hpp"

#include <unistd.h>

#include <filesystem>

#include "harness/errors/error.hpp"
#include "harness/experiment/cell_row.hpp"
#include "harness/runner/recipe.hpp"
#include "harness/runner/run.hpp"
#include "harness/store/store.hpp"
#include "tests/catch.hpp"
#include "tests/folder.hpp"
#include "tests/runner/made_up.hpp"

namespace attnbench::cells_test {

namespace {

const RunRequest request{.experiment = "kernel-error:draws=64,pairs=1",
                         .methods = {"performer:projection=iid,m=4", "performer:m=4"},
                         .inputs = {"pair"},
                         .n = {1},
                         .d = {4},
                         .sweep = {{"length", {"0.1", "0.2"}}},
                         .replicates = 3};

}  // namespace

TEST_CASE("a selection narrows by columns and parameters, with specs in any spelling", "[unit]") {
  Recipe recipe(RecipeSize::quick);
  const Cells all = recipe.run(request);
  CHECK(all.size() == 4);
  CHECK(all.method("performer:m=4,projection=iid").size() == 2);
  CHECK(all.method("performer:m=4,projection=iid").keys() == all.where({{"projection", "iid"}}).keys());
  CHECK(all.methods({"performer:m=4", "performer:m=4,projection=iid"}).size() == 4);
  CHECK(all.input("pair:length=0.1").where({{"d", 4}}).size() == 2);
  CHECK(all.where({{"length", 0.2}, {"experiment", "kernel-error"}}).size() == 2);
  CHECK(all.where({{"experiment", "kernel-error:pairs=1,draws=64"}}).size() == 4);
  CHECK((all.input("pair:length=0.1") + all.method("performer:m=4")).size() == 3);
}

TEST_CASE("a selection that matches nothing throws where it is written", "[unit]") {
  Recipe recipe(RecipeSize::quick);
  const Cells all = recipe.run(request);
  CHECK_THROWS_AS(all.method("performer:m=8"), std::logic_error);
  CHECK_THROWS_AS(all.method("perfomer"), Misuse);
  CHECK_THROWS_AS(all.n(2), std::logic_error);
  CHECK_THROWS_AS(all.where({{"experiment", "rank"}}), std::logic_error);
  CHECK_THROWS_AS(all.where({{"no such column", 1}}), std::logic_error);
  CHECK_THROWS_AS(recipe.figure("f", "title", "caption", {{.title = "panel", .y = "relative_bias"}}), std::logic_error);
}

TEST_CASE("a cell that two requests want is one cell, with the larger number of replicates", "[unit]") {
  Recipe recipe(RecipeSize::quick);
  RunRequest more = request;
  more.replicates = 5;
  const Cells first = recipe.run(request), second = recipe.run(more);
  CHECK(first.keys() == second.keys());
  CHECK(recipe.cells().size() == 4);
  CHECK(first.all().at(0).replicates == 5);
}

TEST_CASE("a measurement is read of one cell, once it has run", "[unit]") {
  Recipe recipe(RecipeSize::quick);
  const Cells all = recipe.run(request), one = all.method("performer:m=4").input("pair:length=0.1");
  CHECK_THROWS_AS(one.scalar("relative_bias"), std::logic_error);
  const MadeUp tens([](const Cell&, const std::string&) {
    return
        [](Index replicate, size_t place) { return 10 * static_cast<double>(replicate) + static_cast<double>(place); };
  });
  recipe.read(tens);
  CHECK(one.scalar("relative_bias") == Samples{{0, 0}, {1, 10}, {2, 20}});
  CHECK(one.arrays("pair_bias", 2) == std::vector<std::vector<double>>{{0, 1}, {10, 11}, {20, 21}});
  CHECK(one.element("pair_bias", 2, 1) == Samples{{0, 1}, {1, 11}, {2, 21}});
  CHECK(one.element("pair_bias", -1) == Samples{{0, 63}, {1, 73}, {2, 83}});  // of 64 elements
  CHECK_THROWS_AS(one.element("pair_bias", 64), std::logic_error);
  CHECK_THROWS_AS(all.scalar("relative_bias"), std::logic_error);
}

TEST_CASE("stored measurements are those of the planned replicates, or none", "[unit]") {
  const Folder folder;
  Store store(folder / "r.db");
  const auto id = store.begin_run("test", "{}");
  run(request, store, id);
  const StoredMeasurements measurements(store);
  const Cells cells = cells_of(request, measurements).method("performer:m=4");
  const Cells one = cells.input("pair:length=0.1"), other = cells.input("pair:length=0.2");
  const Samples bias = one.scalar("relative_bias");
  CHECK(bias.size() == 3);
  CHECK(one.scalar("no such metric").empty());
  CHECK(one.arrays("relative_bias", 1).empty());  // a scalar
  CHECK(one.arrays("pair_bias", 1).size() == 3);
  CHECK_THROWS_AS(one.arrays("pair_bias", 2), std::logic_error);

  // A further replicate, of another recipe, changes nothing; one that lacks the metric leaves a biased subset.
  RunRequest more = request;
  more.replicates = 5;
  run(more, store, id);
  CHECK(one.scalar("relative_bias") == bias);
  CHECK(cells_of(more, measurements).method("performer:m=4").input("pair:length=0.1").scalar("relative_bias").size() ==
        5);
  more.replicates = 6;
  const Cells six = cells_of(more, measurements).method("performer:m=4").input("pair:length=0.1");
  store.record(id, row_of(six.all().at(0).run, false), 5, {}, 1, {});
  CHECK(six.scalar("relative_bias").empty());
  CHECK(six.arrays("pair_bias", 1).empty());
  CHECK(other.scalar("relative_bias").size() == 3);
}

}  // namespace attnbench::cells_test
