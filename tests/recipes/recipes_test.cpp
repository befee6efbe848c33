// Recipes: at every size their cells exist, their figures draw what is measured, their statements are complete, and
// every interval that a rule asks for can exist.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "harness/errors/error.hpp"
#include "harness/experiment/experiment.hpp"
#include "harness/runner/recipe.hpp"
#include "harness/runner/reproduce.hpp"
#include "harness/store/store.hpp"
#include "tests/catch.hpp"
#include "tests/folder.hpp"
#include "tests/recipes/plannable.hpp"
#include "tests/runner/made_up.hpp"

namespace attnbench::recipes_test {

namespace {

constexpr RecipeSize sizes[] = {RecipeSize::smoke, RecipeSize::quick, RecipeSize::full};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::set<std::string> metrics_of(const Recipe& recipe) {
  std::set<std::string> metrics{""};  // a panel's field may be empty
  for (const auto& [request, cells] : recipe.runs())
    for (const Metric& known : find<ExperimentEntry>(parse_spec(request.experiment).name).metrics)
      metrics.insert(known.name);
  return metrics;
}

}  // namespace

TEST_CASE("every recipe's figures draw metrics of its own cells, at every size", "[recipes][models]") {
  for (const auto& name : catalogue("recipes").names())
    for (const RecipeSize size : sizes) {
      INFO(name << " " << to_string(size));
      if (!plannable(name, size)) continue;
      const auto& entry = find<RecipeEntry>(name);
      const auto recipe = written(entry, size);
      CHECK(recipe->cells().size() > 0);
      const auto figures = recipe->figures(entry.text);
      CHECK_FALSE(figures.empty());
      const auto metrics = metrics_of(*recipe);
      for (const auto& figure : figures) {
        const auto read = nlohmann::json::parse(figure.json);
        for (const auto& panel : read["panels"]) {
          CHECK_FALSE(panel["cells"].empty());
          for (const std::string field : {"y", "theory", "x_metric", "area", "bound_x"}) {
            INFO(panel[field]);
            CHECK(metrics.contains(panel[field].get<std::string>()));
          }
        }
      }
    }
}

// Sizes only grow: the full size measures at least what the quick one does, in cells or in replicates.
TEST_CASE("a recipe's sizes rise from smoke to full", "[recipes][models]") {
  for (const auto& name : catalogue("recipes").names()) {
    INFO(name);
    double before = 0;
    for (const RecipeSize size : sizes) {
      if (!plannable(name, size)) continue;
      const auto recipe = written(find<RecipeEntry>(name), size);
      double work = 0;
      for (const RecipeCell& cell : recipe->cells().all()) {
        const Shape& shape = cell.asked.problem.shape;
        double one = static_cast<double>(cell.replicates * shape.nk);
        for (const char* option : {"draws", "blocks", "turn"})
          if (cell.asked.experiment.has(option)) one *= std::stod(cell.asked.experiment.text(option));
        work += one;
      }
      CHECK(work >= before);
      before = work;
    }
  }
}

// A larger size has at least the replicates of a smaller one in all and sequences as long, and curves of time have
// other lengths at full size than at quick size, method by method in each experiment. Quick sizes may leave methods
// out.
TEST_CASE("recipes plan no less in a larger size, and the full size is not the quick one", "[recipes][models]") {
  struct Planned {
    size_t cells = 0;
    std::set<Index> lengths;
  };
  struct Size {
    std::map<std::pair<std::string, std::string>, Planned> methods;  // by experiment and method
    std::map<std::string, Index> replicates;                         // by the key of a cell
    Index units() const {
      Index sum = 0;
      for (const auto& [key, count] : replicates) sum += count;
      return sum;
    }
  };
  // Nothing in them is short of what they are about, or their numbers are recorded.
  const std::set<std::string> one_size{
      "associative-recall", "copy-task",       "empty-rows",        "fnet-twice",
      "layer-flops",        "learning-curves", "synthesizer-input", "transfer-and-recovery"};
  const auto planned = [](const std::string& name, RecipeSize size) {
    Size all;
    const auto recipe = written(find<RecipeEntry>(name), size);
    const auto cells = recipe->cells().all();
    const auto keys = recipe->cells().keys();
    for (size_t i = 0; i < cells.size(); ++i) {
      Planned& one = all.methods[{cells[i].asked.experiment.name(), cells[i].asked.method.name()}];
      ++one.cells;
      one.lengths.insert(cells[i].asked.problem.shape.nk);
      all.replicates[keys[i]] = cells[i].replicates;
    }
    return all;
  };
  for (const auto& name : plannable_recipes(RecipeSize::full)) {
    INFO(name);
    const Size smoke = planned(name, RecipeSize::smoke), quick = planned(name, RecipeSize::quick),
               full = planned(name, RecipeSize::full);
    CHECK(smoke.units() <= quick.units());
    CHECK(quick.units() <= full.units());
    CHECK((quick.replicates == full.replicates) == one_size.contains(name));
    for (const auto& [what, before] : smoke.methods)
      if (const auto after = quick.methods.find(what); after != quick.methods.end()) {
        INFO(what.first << " of " << what.second << ", smoke and quick");
        CHECK(*before.lengths.rbegin() <= *after->second.lengths.rbegin());
      }
    for (const auto& [what, before] : quick.methods) {
      INFO(what.first << " of " << what.second << ", quick and full");
      REQUIRE(full.methods.contains(what));
      const Planned& after = full.methods.at(what);
      CHECK(before.cells <= after.cells);
      CHECK(*before.lengths.rbegin() <= *after.lengths.rbegin());
      if (find<ExperimentEntry>(what.first).timing() && before.lengths.size() > 1)
        CHECK(before.lengths != after.lengths);
    }
  }
}

// A line through the points is of the same number as the points: its name says so, or it is one of these.
TEST_CASE("the theory that a panel draws belongs to its y", "[recipes]") {
  const std::map<std::string, std::string> others{{"speedup", "speedup_by_flops"},
                                                  {"orthogonal_gain", "orthogonal_gain_bound"},
                                                  {"regularised_ratio", "regularised_ratio_bound"},
                                                  {"softmax_bias", "target_bias"},
                                                  {"dobrushin_product", "dobrushin_bound"}};
  size_t lines = 0;
  for (const auto& name : plannable_recipes(RecipeSize::quick)) {
    const auto& entry = find<RecipeEntry>(name);
    for (const auto& figure : written(entry, RecipeSize::quick)->figures(entry.text)) {
      const auto read = nlohmann::json::parse(figure.json);
      for (const auto& panel : read["panels"]) {
        const auto y = panel["y"].get<std::string>(), theory = panel["theory"].get<std::string>();
        if (theory.empty()) continue;
        INFO(figure.name << ": " << y << " with the line of " << theory);
        ++lines;
        CHECK((theory == y + "_theory" || (others.contains(y) && others.at(y) == theory)));
      }
    }
  }
  CHECK(lines > 10);
}

TEST_CASE("every statement says who claims it, what is measured, and why the bound is where it is", "[recipes]") {
  std::set<std::string> texts;
  for (const auto& name : plannable_recipes(RecipeSize::quick))
    for (const Statement& s : written(find<RecipeEntry>(name), RecipeSize::quick)->statements()) {
      INFO(name << ": " << s.text);
      CHECK(texts.insert(name + s.text).second);
      CHECK_FALSE(s.text.empty());
      CHECK_FALSE(s.definition.empty());
      CHECK_FALSE(s.threshold.empty());
      CHECK_FALSE(s.because.empty());
      // A published statement carries the source's words or a paraphrase; a finding of our own borrows no author's
      // name.
      CHECK(s.source.empty() == (s.quotation.empty() && s.paraphrase.empty()));
      for (const std::string& seen :
           {s.text, s.source, s.quotation, s.paraphrase, s.definition, s.threshold, s.because}) {
        CHECK_FALSE(has(seen, ".md"));       // documents that readers do not have
        CHECK_FALSE(has(seen, "source 0"));  // the project's own numbers of papers
      }
    }
}

// An interval that cannot exist at the error rate that a rule asks for throws. So does a measurement that the recipe
// does not plan.
TEST_CASE("every interval that a recipe asks for can exist, at every size", "[recipes][models]") {
  const MadeUp numbers = arbitrary();
  for (const RecipeSize size : sizes) {
    size_t rulings = 0;
    for (const auto& name : plannable_recipes(size)) {
      INFO(name << " " << to_string(size));
      const auto recipe = written(find<RecipeEntry>(name), size);
      std::vector<Verdict> verdicts;
      CHECK_NOTHROW(verdicts = recipe->verdicts(numbers));
      rulings += static_cast<size_t>(std::ranges::count_if(
          verdicts, [](const Verdict& verdict) { return verdict.finding.ruling != Ruling::measured; }));
      for (const Verdict& verdict : verdicts) {
        INFO(verdict.statement.text);
        CHECK_FALSE(verdict.finding.numbers.empty());
        CHECK(verdict.finding.numbers.size() < 2000);  // the rest is in `compared`
        if (verdict.finding.ruling == Ruling::depends) CHECK_FALSE(verdict.finding.region.empty());
      }
    }
    CHECK(rulings > 100);
    CHECK(rulings <= most_rulings);  // what all intervals of a verdict together may err by is a share of that many
  }
}

TEST_CASE("the test of intervals sees 21 blocks where 22 are needed", "[unit]") {
  for (const int blocks : {21, 22}) {
    Recipe recipe(RecipeSize::quick);
    const Cells cells = recipe.run({.experiment = fmt::format("speed:blocks={}", blocks),
                                    .methods = {"linear"},
                                    .inputs = {"gaussian"},
                                    .n = {64}});
    recipe.judge({.statement = {"s"},
                  .numbers = {{.estimate = [=](double) { return median_of(cells.turns("seconds"), 9.26e-7); }}},
                  .rule = below(1)});
    if (blocks == 21)
      CHECK_THROWS_AS(recipe.verdicts(arbitrary()), std::logic_error);
    else
      CHECK_NOTHROW(recipe.verdicts(arbitrary()));
  }
}

TEST_CASE("an error rate is shared by the intervals of a statement, and smoke sizes claim nothing", "[unit]") {
  std::vector<double> rates;
  const auto number = [&](const char* what) {
    return Number{.what = what, .estimate = [&](double rate) {
                    rates.push_back(rate);
                    return certain(1);
                  }};
  };
  const Judgement judgement{
      .statement = {"s"}, .numbers = {number("a"), number("b")}, .rule = below(2), .beside = {number("c")}};
  judged(judgement, Recipe(RecipeSize::full).error_rate());
  CHECK(rates == std::vector<double>(3, verdict_error_rate / 3));
  rates.clear();
  judged(judgement, Recipe(RecipeSize::smoke).error_rate());
  CHECK(rates == std::vector<double>(3, 1));
  CHECK(most_rulings * verdict_error_rate <= 0.05 * (1 + 1e-12));
}

TEST_CASE("which recipes measure time follows from what they run", "[unit]") {
  CHECK(measures_time(*written(find<RecipeEntry>("crossover"), RecipeSize::quick)));
  CHECK_FALSE(measures_time(*written(find<RecipeEntry>("sign-fix"), RecipeSize::quick)));
}

TEST_CASE("specs in a panel may be spelled in any way", "[unit]") {
  Recipe recipe(RecipeSize::quick);
  const Cells cells = recipe.run({.experiment = "kernel-error:pairs=4,draws=16384",
                                  .methods = {"performer:m=4"},
                                  .inputs = {"gaussian"},
                                  .n = {4},
                                  .d = {4}});
  recipe.figure(
      "f", "title", "caption",
      {{.title = "panel", .cells = cells, .y = "relative_mse", .ratio_to = "performer:projection=orthogonal,m=8"}});
  const auto panel = nlohmann::json::parse(recipe.figures({}).at(0).json)["panels"][0];
  CHECK(panel["ratio_to"] == "performer:m=8");
  CHECK(panel["cells"] == cells.keys());
  CHECK_THROWS_AS(recipe.figure("g", "title", "caption",
                                {{.title = "panel", .cells = cells, .y = "relative_mse", .ratio_to = "perfomer"}}),
                  Misuse);
}

// The smallest size of every recipe: all of it runs, is drawn and comes to verdicts.
TEST_CASE("every recipe runs", "[statistics]") {
  const Folder folder;
  Store store(folder / "r.db");
  const auto id = store.begin_run("test", "{}");
  for (const auto& name : plannable_recipes(RecipeSize::smoke)) {
    INFO(name);
    RunSummary total;
    const auto done = reproduce(find<RecipeEntry>(name), RecipeSize::smoke, {}, store, id, total);
    REQUIRE(done);
    INFO(total.first_reason);
    CHECK(total.not_done == 0);
    for (const auto& verdict : done->verdicts) {
      INFO(verdict.statement.text);
      CHECK_FALSE(verdict.finding.numbers.empty());
    }
  }
}

TEST_CASE("two recipes time the same setting apart, and share what is not timed", "[unit]") {
  const auto key = [](const char* name, const char* experiment) {
    Recipe recipe(RecipeSize::quick, name);
    return recipe.run({.experiment = experiment, .methods = {"linear"}, .inputs = {"gaussian"}, .n = {64}})
        .keys()
        .at(0);
  };
  CHECK(key("a", "speed") != key("b", "speed"));
  CHECK(key("a", "speed") == key("a", "speed"));
  CHECK(key("a", "sparsity") == key("b", "sparsity"));
}

}  // namespace attnbench::recipes_test
