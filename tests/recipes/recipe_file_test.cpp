// Recipe files: two recipes of the tree written as files come to the same cells and findings, in made-up worlds at
// every size; what a file cannot mean is refused with its line; and every rule is the one of judge.hpp.
#include "harness/cli/recipe_file.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "harness/cli/command.hpp"
#include "harness/runner/declared_recipe.hpp"
#include "harness/runner/reproduce.hpp"
#include "tests/folder.hpp"
#include "tests/misuse.hpp"
#include "tests/runner/made_up.hpp"

namespace attnbench {
namespace {

namespace fs = std::filesystem;

constexpr RecipeSize sizes[] = {RecipeSize::smoke, RecipeSize::quick, RecipeSize::full};

RecipeEntry of_tests(const std::string& name) {
  const std::string file = fmt::format("{}/tests/recipes/files/{}.recipe.toml", ATTNBENCH_SOURCE_DIR, name);
  std::ifstream stream(file);
  REQUIRE(stream);
  return parse_recipe(std::string(std::istreambuf_iterator<char>(stream), {}), file);
}

// Numbers around 1 that depend on the cell, with a scatter that depends on the replicate.
MadeUp world(double scatter) {
  return MadeUp([scatter](const Cell& cell, const std::string& metric) {
    const auto hash = std::hash<std::string>()(cell.method.spec() + cell.input_key() + metric);
    const double level = 0.5 + static_cast<double>(hash % 1000) / 1000;
    return [=](Index replicate, size_t) {
      return level * (1 + scatter * std::sin(1.7 * static_cast<double>(replicate) + static_cast<double>(hash % 7)));
    };
  });
}

// The smallest recipe: everything that a test does not change.
const std::string head = R"(name = "small"
title = "A small recipe"
question = "Is it small?"
[sizes]
n = { smoke = 16, quick = 32, full = 64 }
[[run]]
name = "errors"
experiment = "attention-error:matrix=false"
method = ["performer", "performer:projection=iid"]
input = ["gaussian", "gaussian:scale=2"]
n = "{n}"
sweep = "m=8,16"
replicates = { of = 32 }
)";

std::string small(const std::string& rest) {
  std::string text = head;
  text.replace(text.find("{ of = 32 }"), 11, "32");
  return text + rest;
}

const std::string stated = R"(
[[statement]]
text = "It is so"
definition = "the error at n = {n}"
threshold = "1: equal errors"
because = "theory says so"
metric = "relative_output_error"
)";

std::string statement(const std::string& rest) { return small(stated + rest); }

std::vector<Verdict> verdicts_of(const std::string& text, const Measurements& numbers,
                                 RecipeSize size = RecipeSize::quick) {
  const RecipeEntry entry = parse_recipe(text, "small.recipe.toml");
  return written(entry, size)->verdicts(numbers);
}

// The error is m / 10 for iid vectors, 1 / m for orthogonal ones, and twice that on the wide input.
MadeUp errors() {
  return MadeUp([](const Cell& cell, const std::string& metric) {
    const double m = cell.method.real("m"), wide = cell.input.text("scale") == "2" ? 2 : 1;
    const bool iid = cell.method.text("projection") == "iid";
    const double value = metric == "relative_output_error" ? wide * (iid ? m / 10 : 1 / m) : 5;
    return [=](Index, size_t) { return value; };
  });
}

std::string refusal(const std::string& text, bool written_too = false) {
  return misuse_of([&] {
    const RecipeEntry entry = parse_recipe(text, "small.recipe.toml");
    if (written_too) written(entry, RecipeSize::quick);
  });
}

void same_findings(const std::string& name) {
  const RecipeEntry of_file = of_tests(name);
  for (const RecipeSize size : sizes) {
    const auto file = written(of_file, size), tree = written(find<RecipeEntry>(name), size);
    INFO(name << " " << to_string(size));
    const auto sorted = [](const Recipe& recipe) {
      const auto keys = recipe.cells().keys();
      return std::set<std::string>(keys.begin(), keys.end());
    };
    CHECK(sorted(*file) == sorted(*tree));
    for (const double scatter : {0.0, 0.02, 0.5}) {
      const MadeUp numbers = world(scatter);
      const auto of_the_file = file->verdicts(numbers), of_the_tree = tree->verdicts(numbers);
      REQUIRE(of_the_file.size() == of_the_tree.size());
      for (size_t i = 0; i < of_the_file.size(); ++i) {
        const Finding &a = of_the_file[i].finding, &b = of_the_tree[i].finding;
        INFO(of_the_tree[i].statement.text << "\n" << a.numbers << "\n" << b.numbers);
        CHECK(to_string(a.ruling) == to_string(b.ruling));
        CHECK(of_the_file[i].statement.expected == of_the_tree[i].statement.expected);
        REQUIRE(a.compared.size() == b.compared.size());
        for (size_t k = 0; k < a.compared.size(); ++k) {
          CHECK(a.compared[k].value == b.compared[k].value);
          CHECK(a.compared[k].low == b.compared[k].low);
          CHECK(a.compared[k].high == b.compared[k].high);
          CHECK(a.compared[k].count == b.compared[k].count);
          CHECK(a.compared[k].side == b.compared[k].side);
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("a recipe of the tree comes to the same cells and findings as a file", "[recipes]") {
  same_findings("png-kernels");
  same_findings("nystrom-iterations");
}

TEST_CASE("a recipe file's verdict is that of the recipe in the tree, measured", "[statistics]") {
  const Folder folder;
  Store store(folder / "r.db");
  const auto id = store.begin_run("test", "{}");
  RunSummary total;
  const auto file = reproduce(of_tests("png-kernels"), RecipeSize::smoke, {}, store, id, total);
  const Index ran = total.ran;
  const auto tree = reproduce(find<RecipeEntry>("png-kernels"), RecipeSize::smoke, {}, store, id, total);
  REQUIRE((file && tree));
  CHECK(ran > 0);
  CHECK(total.ran == ran);  // the same cells
  CHECK(total.not_done == 0);
  REQUIRE(file->verdicts.size() == 1);
  CHECK(file->verdicts[0].finding.ruling == tree->verdicts[0].finding.ruling);
  CHECK(file->verdicts[0].finding.numbers.substr(0, 20) == tree->verdicts[0].finding.numbers.substr(0, 20));
  CHECK(file->command.find("tests/recipes/files/png-kernels.recipe.toml --smoke") != std::string::npos);
}

TEST_CASE("a recipe file's rules are judged as those of recipes in C++", "[recipes]") {
  const std::string iid = "of = { projection = \"iid\" }\n", orthogonal = "of = { projection = \"orthogonal\" }\n";
  const std::string over = "over = { projection = \"iid\" }\n", each = "each = [\"input\", \"m\"]\n";
  struct Case {
    std::string rest;
    Ruling ruling;
    std::vector<double> values;
  };
  using enum Ruling;
  for (const auto& [rest, ruling, values] : std::vector<Case>{
           // (1 / m) / (m / 10) = 10 / m^2, the same on both inputs
           {orthogonal + over + each + "below = 1", pass, {10. / 64, 10. / 256, 10. / 64, 10. / 256}},
           {orthogonal + over + each + "below = 0.1", fail, {10. / 64, 10. / 256, 10. / 64, 10. / 256}},
           {orthogonal + over + each + "above = 0.1", fail, {10. / 64, 10. / 256, 10. / 64, 10. / 256}},
           {orthogonal + over + each + "above = 0.01", pass, {10. / 64, 10. / 256, 10. / 64, 10. / 256}},
           {orthogonal + over + each + "between = [0.03, 0.2]", pass, {10. / 64, 10. / 256, 10. / 64, 10. / 256}},
           {orthogonal + over + each + "between = [0.05, 0.2]", fail, {10. / 64, 10. / 256, 10. / 64, 10. / 256}},
           {orthogonal + over + each + "contains = 0.15625\nwithin = 0.1", fail, {}},
           {orthogonal + each + "where = \"m\"\nbelow = 0.26\n", conditional, {0.125, 0.25, 0.0625, 0.125}},
           {iid + "each = \"input\"\nwhere = \"m\"\nany = true\nbelow = 1.5", conditional, {0.8, 1.6, 1.6, 3.2}},
           {iid + each + "some_below = 1", pass, {0.8, 1.6, 1.6, 3.2}},
           {iid + each + "some_below = 0.5", fail, {0.8, 1.6, 1.6, 3.2}},
           {"at_most = 3.2", pass, {3.2}},
           {"at_most = 3.1", fail, {3.2}},
           {"at_most = { metric = \"kl_exact_to_estimate\" }", pass, {3.2}},
           {"each = \"cell\"\nover = { metric = \"kl_exact_to_estimate\" }\nbelow = 0.65", pass, {}},
           {"each = \"cell\"\nreport = [1]", measured, {}}}) {
    INFO(rest);
    // Regions need comparisons in them that decide either way.
    const bool first_is_decided = rest.find("where = \"m\"\nbelow = 0.26") == std::string::npos;
    const std::string metric = "relative_output_error";
    std::string text = statement(rest);
    if (text.find("kl_exact") != std::string::npos) {
      text.replace(text.find(":matrix=false"), 13, "");
      while (text.find("kl_exact_to_estimate") != std::string::npos)
        text.replace(text.find("kl_exact_to_estimate"), 20, "row_l1");
    }
    const auto verdicts = verdicts_of(text, errors());
    REQUIRE(verdicts.size() == 1);
    const Finding& finding = verdicts[0].finding;
    INFO(finding.numbers << "\n" << finding.region);
    if (first_is_decided) CHECK(to_string(finding.ruling) == to_string(ruling));
    if (values.empty()) continue;
    REQUIRE(finding.compared.size() == values.size());
    for (size_t i = 0; i < values.size(); ++i) CHECK(finding.compared[i].value == Approx(values[i]).epsilon(1e-12));
  }
}

}  // namespace attnbench
