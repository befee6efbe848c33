// Recipe files: two recipes of the tree written as files come to the same cells and findings, in made-up worlds at
// every size; what a file cannot mean is refused with its line; and every rule is the one of judge.hpp.
#include "harness/cli/recipe_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "harness/runner/declared_recipe.hpp"
#include "harness/runner/json_file.hpp"
#include "harness/runner/reproduce.hpp"
#include "harness/store/store.hpp"
#include "tests/folder.hpp"
#include "tests/misuse.hpp"
#include "tests/program.hpp"
#include "tests/runner/made_up.hpp"

namespace attnbench {
namespace {

namespace fs = std::filesystem;

constexpr RecipeSize sizes[] = {RecipeSize::smoke, RecipeSize::quick, RecipeSize::full};

RecipeEntry of_tests(const std::string& name) {
  const std::string file = fmt::format("{}/tests/recipes/files/{}.recipe.json", ATTNBENCH_SOURCE_DIR, name);
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
const std::string head = R"({
  "name": "small",
  "title": "A small recipe",
  "question": "Is it small?",
  "sizes": {"n": {"smoke": 16, "quick": 32, "full": 64}},
  "runs": [{
    "name": "errors",
    "experiment": "attention-error:matrix=false",
    "method": ["performer", "performer:projection=iid"],
    "input": ["gaussian", "gaussian:scale=2"],
    "n": "{n}",
    "sweep": "m=8,16",
    "replicates": 32
  }],
)";

// With a statement from line 15 on, whose further keys are on line 21 and after it.
std::string statement(const std::string& rest) {
  return head + R"("statements": [{
    "text": "It is so",
    "definition": "the error at n = {n}",
    "threshold": "1: equal errors",
    "because": "theory says so",
    "metric": "relative_output_error",
)" + rest +
         "\n}]}";
}

std::vector<Verdict> verdicts_of(const std::string& text, const Measurements& numbers,
                                 RecipeSize size = RecipeSize::quick) {
  const RecipeEntry entry = parse_recipe(text, "small.recipe.json");
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
    const RecipeEntry entry = parse_recipe(text, "small.recipe.json");
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
  const auto ran = total.ran;
  const auto tree = reproduce(find<RecipeEntry>("png-kernels"), RecipeSize::smoke, {}, store, id, total);
  REQUIRE((file && tree));
  CHECK(ran > 0);
  CHECK(total.ran == ran);  // the same cells
  CHECK(total.not_done == 0);
  REQUIRE(file->verdicts.size() == 1);
  CHECK(file->verdicts[0].finding.ruling == tree->verdicts[0].finding.ruling);
  CHECK(file->verdicts[0].finding.numbers.substr(0, 20) == tree->verdicts[0].finding.numbers.substr(0, 20));
  CHECK(file->command.find("tests/recipes/files/png-kernels.recipe.json --smoke") != std::string::npos);
}

TEST_CASE("a recipe file's rules are judged as those of recipes in C++", "[recipes]") {
  const std::string iid = R"("of": {"projection": "iid"}, )", orthogonal = R"("of": {"projection": "orthogonal"}, )";
  const std::string over = R"("over": {"projection": "iid"}, )", each = R"("each": ["input", "m"], )";
  const std::string one = R"("of": {"projection": "orthogonal", "m": 8, "input": "gaussian"}, )";
  const std::string by = R"("each": "input", "where": "m", )", cell = R"("each": "cell", )";
  const std::string row_l1 = R"("over": {"metric": "row_l1"}, )";
  struct Case {
    std::string rest;
    Ruling ruling;
    std::vector<double> values;
  };
  using enum Ruling;
  const std::vector<double> ratios{10. / 64, 10. / 256, 10. / 64, 10. / 256};  // (1 / m) / (m / 10), on both inputs
  const std::vector<double> own{0.8, 1.6, 1.6, 3.2};                           // of iid vectors
  const std::vector<double> by_m{0.125, 0.25, 0.0625, 0.125};
  for (
      const auto& [rest, ruling, values] : std::vector<Case>{
          {orthogonal + over + each + R"("below": 1)", holds, ratios},
          {orthogonal + over + each + R"("below": 0.1)", refuted, ratios},
          {orthogonal + over + each + R"("above": 0.1)", refuted, ratios},
          {orthogonal + over + each + R"("above": 0.01)", holds, ratios},
          {orthogonal + over + each + R"("between": [0.03, 0.2])", holds, ratios},
          {orthogonal + over + each + R"("between": [0.05, 0.2])", refuted, ratios},
          {orthogonal + over + each + R"("between": [0.03, 0.1])", refuted, ratios},
          {orthogonal + over + each + R"("contains": 0.15625, "within": 0.1)", refuted, ratios},
          // A column that `over` sets itself replaces the column of `each`.
          {R"("of": {"input": "gaussian"}, "each": ["projection", "m"], "over": {"projection": "iid", "input": "gaussian"}, "below": 2)",
           holds,
           {10. / 64, 10. / 256, 1, 1}},
          {one + R"("contains": 0.125, "within": 0.1)", holds, {0.125}},
          {one + R"("contains": 0.126, "within": 0.1)", refuted, {0.125}},
          {orthogonal + by + R"("below": 0.26)", holds, by_m},
          {orthogonal + by + R"("below": 0.2)", depends, by_m},
          {orthogonal + by + R"("above": 0.1)", depends, by_m},
          {orthogonal + by + R"("above": 0.3)", refuted, by_m},
          {iid + by + R"("any": true, "below": 1.5)", depends, own},
          {iid + by + R"("any": true, "below": 1.7)", holds, own},
          {iid + by + R"("below": 1.7)", depends, own},
          {iid + each + R"("some_below": 1)", holds, own},
          {iid + each + R"("some_below": 0.5)", refuted, own},
          {R"("at_most": 3.2)", holds, {3.2}},
          {R"("at_most": 3.1)", refuted, {3.2}},
          {R"("at_most": {"metric": "row_l1"})", holds, {3.2}},
          {iid + cell + row_l1 + R"("below": 0.65)", holds, {0.16, 0.32, 0.32, 0.64}},
          {iid + cell + row_l1 + R"("below": 0.5)", refuted, {0.16, 0.32, 0.32, 0.64}},
          {iid + cell + R"("report": [1])", measured, own}}) {
    INFO(rest);
    const auto verdicts = verdicts_of(statement(rest), errors());
    REQUIRE(verdicts.size() == 1);
    const Finding& finding = verdicts[0].finding;
    INFO(finding.numbers << "\n" << finding.region);
    CHECK(to_string(finding.ruling) == to_string(ruling));
    REQUIRE(finding.compared.size() == values.size());
    std::multiset<double> found, wanted(values.begin(), values.end());
    for (const Compared& one_compared : finding.compared) found.insert(one_compared.value);
    for (auto a = found.begin(), b = wanted.begin(); a != found.end(); ++a, ++b) CHECK(*a == Approx(*b).epsilon(1e-12));
  }
}

TEST_CASE("a recipe file's number that a cell lacks decides nothing", "[recipes]") {
  // The cells with 16 vectors have no numbers, as if they had failed.
  class Half final : public Measurements {
   public:
    Samples scalars(const RecipeCell& cell, const std::string& key, const std::string& metric) const override {
      return cell.run.method.text("m") == "16" ? Samples{} : errors().scalars(cell, key, metric);
    }
    std::map<Index, std::vector<double>> arrays(const RecipeCell&, const std::string&, const std::string&,
                                                size_t) const override {
      return {};
    }
  };
  const auto found = [](const std::string& rest) { return verdicts_of(statement(rest), Half()).at(0).finding; };
  const Finding most = found(R"("at_most": 10)");
  CHECK(most.ruling == Ruling::open);
  CHECK(contains(most.numbers, "; 4 of 8 cells have no such number"));
  CHECK(found(R"("at_most": 0.1)").ruling == Ruling::refuted);
  CHECK(found(R"("each": "cell", "below": 10)").ruling == Ruling::open);
  CHECK(found(R"("each": "cell", "below": 0.1)").ruling == Ruling::refuted);
}

TEST_CASE("a recipe file names the region where a statement holds, and its boundary on an axis", "[recipes]") {
  const auto region = [](const std::string& rest) {
    return verdicts_of(statement(R"("of": {"projection": "iid", "input": "gaussian"}, "where": "m", )" + rest),
                       errors())
        .at(0)
        .finding.region;
  };
  // m / 10 crosses 1 at m = 10.
  CHECK(region(R"("below": 1)") == "holds up to m = 8, fails from 16 on; the boundary is at about 10");
  CHECK(region(R"("above": 1)") == "fails up to m = 8, holds from 16 on; the boundary is at about 10");
}

TEST_CASE("the intervals of a statement in a file share its error rate", "[recipes]") {
  const auto ends = [](const std::string& rest) {
    const MadeUp numbers([](const Cell&, const std::string&) {
      return [](Index replicate, size_t) { return static_cast<double>(replicate); };
    });
    const Compared one = verdicts_of(statement(rest), numbers).at(0).finding.compared.at(0);
    return std::pair(one.low, one.high);
  };
  const auto of_one = ends(R"("report": [0], "of": {"projection": "iid", "input": "gaussian", "m": 8})");
  const auto of_eight = ends(R"("report": [0], "each": "cell")");
  Samples replicates;
  for (Index r = 0; r < 32; ++r) replicates[r] = static_cast<double>(r);
  const Estimate one = median_of(replicates, verdict_error_rate), eight = median_of(replicates, verdict_error_rate / 8);
  CHECK(of_one == std::pair(one.interval.low, one.interval.high));
  CHECK(of_eight == std::pair(eight.interval.low, eight.interval.high));
  CHECK(one.interval.low > eight.interval.low);
}

TEST_CASE("a recipe file compares turns block by block, and takes means and single numbers", "[recipes]") {
  const std::string timed = R"({"name": "timed", "title": "t", "question": "q",
  "runs": [{"experiment": "speed:blocks=32,turn=0.01", "method": ["linear", "softmax"], "n": [64, 128]}],
  "statements": [{"text": "It doubles", "definition": "d", "threshold": "t", "because": "b", "metric": "seconds",
    "take": "median of turns", "each": "method", "of": {"n": 128}, "over": {"n": 64}, "between": [1.9, 4.1]}]})";
  const MadeUp seconds([](const Cell& cell, const std::string&) {
    const double n = static_cast<double>(cell.problem.shape.nk);
    // A slow machine in some blocks: only ratios of the same block are 2 or 4 in all of them.
    return [n, linear = cell.method.name() == "linear"](Index, size_t block) {
      return (linear ? n : n * n) * (block % 3 == 0 ? 10 : 1);
    };
  });
  const auto twice = verdicts_of(timed, seconds).at(0).finding;
  REQUIRE(twice.compared.size() == 2);
  CHECK(twice.ruling == Ruling::holds);
  CHECK(std::set<double>{twice.compared[0].value, twice.compared[1].value} == std::set<double>{2, 4});
  for (const Compared& one : twice.compared) CHECK(one.low == one.high);
  CHECK(twice.compared[0].count == 32);

  const auto drawn = [](const std::string& replicates, const std::string& rest) {
    std::string draws = statement(rest);
    draws.replace(draws.find("\"replicates\": 32"), 16, "\"replicates\": " + replicates);
    return draws;
  };
  const MadeUp skewed([](const Cell&, const std::string&) {
    return [](Index replicate, size_t) { return replicate % 4 == 0 ? 4.0 : 0.0; };
  });
  const std::string one = R"("of": {"projection": "iid", "input": "gaussian", "m": 8}, "report": [0], "take": )";
  CHECK(verdicts_of(drawn("64", one + "\"mean\""), skewed).at(0).finding.compared.at(0).value == Approx(1));
  CHECK(verdicts_of(drawn("64", one + "\"median\""), skewed).at(0).finding.compared.at(0).value == 0);
  const auto exact = verdicts_of(drawn("1", one + "\"exact\""), skewed).at(0).finding.compared.at(0);
  CHECK((exact.value == 4 && exact.low == 4 && exact.high == 4 && exact.count == 1));
}

TEST_CASE("each size of a recipe file has its own values, and a full size without one has those of quick",
          "[recipes]") {
  const std::string text = statement(R"("of": {"projection": "iid"}, "each": ["input", "m"], "below": 1)");
  const RecipeEntry entry = parse_recipe(text, "small.recipe.json");
  for (const auto& [size, n] : {std::pair{RecipeSize::smoke, 16}, {RecipeSize::quick, 32}, {RecipeSize::full, 64}}) {
    const auto recipe = written(entry, size);
    CHECK(recipe->cells().size() == 8);
    for (const RecipeCell& cell : recipe->cells().all()) CHECK(cell.asked.problem.shape.nk == n);
    CHECK(recipe->statements().at(0).definition == fmt::format("the error at n = {}", n));
  }
  std::string without = text;
  without.replace(without.find(", \"full\": 64"), 12, "");
  CHECK(written(parse_recipe(without, "f"), RecipeSize::full)->cells().all().at(0).asked.problem.shape.nk == 32);
  // The words of others are never changed, and braces around anything but a name are text.
  const std::string braces = R"("statements": [{"text": ["{-1, 1} and", "{n}"], "source": "Somebody {n}",
    "quotation": "{n}", "definition": "d", "threshold": "t", "because": "b", "metric": "relative_output_error",
    "at_most": 1}]})";
  const auto quoted = written(parse_recipe(head + braces, "f"), RecipeSize::quick)->statements().at(0);
  CHECK(quoted.text == "{-1, 1} and 32");
  CHECK(quoted.source == "Somebody {n}");
  CHECK(quoted.quotation == "{n}");
}

TEST_CASE("docs/sharing.md names every outcome that a recipe file may expect, and no other", "[unit]") {
  std::ifstream page(ATTNBENCH_SOURCE_DIR "/docs/sharing.md");
  std::string line;
  while (std::getline(page, line) && !line.starts_with("| `expected` |")) {
  }
  std::set<Ruling> named;
  const std::string cell = line.substr(std::string("| `expected` |").size());
  for (size_t begin = cell.find('`'); begin != std::string::npos; begin = cell.find('`', begin)) {
    const size_t end = cell.find('`', begin + 1);
    const std::string word = cell.substr(begin + 1, end - begin - 1);
    INFO(word);
    const std::string text = statement(R"("each": "cell", "below": 1, "expected": ")" + word + '"');
    named.insert(written(parse_recipe(text, "f"), RecipeSize::quick)->statements().at(0).expected);
    begin = end + 1;
  }
  CHECK(named == std::set<Ruling>{Ruling::holds, Ruling::refuted, Ruling::depends, Ruling::open});
}

TEST_CASE("a file that is no recipe is refused with its line, what it has and what was expected", "[unit]") {
  const auto replaced = [](std::string text, const std::string& part, const std::string& other) {
    REQUIRE(text.find(part) != std::string::npos);
    return text.replace(text.find(part), part.size(), other);
  };
  const std::string good = statement(R"(    "each": "cell",
    "below": 1)");
  CHECK_NOTHROW(written(parse_recipe(good, "f"), RecipeSize::quick));
  struct Case {
    std::string part, other, line;
    std::vector<std::string> says;
  };
  const std::string below = R"("below": 1)", because = R"("because": "theory says so",)";
  for (const auto& [part, other, line, says] : std::vector<Case>{
           {R"("small")", "small", "line 2", {"not JSON"}},
           {R"("small")", R"("a small one")", "line 2", {"'a small one'", "letters"}},
           {R"(  "name": "small",)", "", "line 1", {"'name' is missing"}},
           {R"("title")", R"("titel")", "line 3", {"'titel'", "did you mean title?"}},
           {R"("A small recipe")", "3", "line 3", {"'title' is an integer; expected a string"}},
           {R"("A small recipe")", R"(["A", ["b"]])", "line 3", {"'title' is a list; expected a string"}},
           {R"("A small recipe")", "null", "line 3", {"null"}},
           {R"("A small recipe")", R"("A", "name": "b")", "line 3", {"'name' a second time"}},
           {R"("smoke": 16, )", "", "line 5", {"'smoke' is missing"}},
           {R"("smoke")", R"("tiny": 1, "smoke")", "line 5", {"'tiny'", "known: smoke, quick, full"}},
           {R"("smoke": 16)", R"("smoke": {"a": 1})", "line 5", {"'n' is an object"}},
           {R"("runs": [{)", R"("runs": 3, "x": [{)", "line 6", {"'x'"}},
           {R"("n": "{n}")", R"("n": "{m}")", "line 11", {"names {m}", "n"}},
           {R"("n": "{n}")", R"("n": [[1]])", "line 11", {"'n' is a list"}},
           {R"("n": "{n}")", R"("n": -3)", "line 6", {"--n -3"}},
           {R"("n": "{n}")", R"("threads": 2)", "line 6", {"no option 'threads'"}},
           {R"(    "method": ["performer", "performer:projection=iid"],)", "", "line 6", {"no --method"}},
           {R"("replicates": 32)", R"("until": "rel-ci=0.1")", "line 6", {"no option 'until'"}},
           {R"("replicates": 32)", R"("match": "seconds=1")", "line 6", {"every machine"}},
           {"attention-error:", "attention-eror:", "line 6", {"attention-eror", "did you mean attention-error"}},
           {R"("text": "It is so",)", "", "line 15", {"'text' is missing"}},
           {R"("It is so")", R"("")", "line 16", {"'text' is empty"}},
           {because, R"("cause": "x",)", "line 19", {"a statement has no 'cause'", "because"}},
           {because, because + R"("source": "Somebody 2020",)", "line 15", {"'quotation'"}},
           {because, because + R"("quotation": "words",)", "line 15", {"'source'"}},
           {because, because + R"("expected": "hold",)", "line 19", {"did you mean holds?"}},
           {R"(,
    "below": 1)",
            "",
            "line 15",
            {"without a rule", "some_below"}},
           {below, R"("below": 1, "above": 0)", "line 15", {"both 'below' and 'above'"}},
           {below, R"("below": "1")", "line 22", {"'below' is a string; expected a finite number"}},
           {below, R"("below": 1e999)", "line 22", {"not JSON"}},
           {below, R"("between": [2, 1])", "line 22", {"lower and the upper"}},
           {below, R"("contains": 1)", "line 15", {"'within' is missing"}},
           {below, R"("contains": 1, "within": 0)", "line 22", {"not above 0"}},
           {below, R"("below": 1, "within": 1)", "line 22", {"goes with 'contains'"}},
           {below, R"("report": [1], "expected": "holds")", "line 22", {"decides nothing"}},
           {below, R"("at_most": 1)", "line 21", {"'each' does not go with 'at_most'"}},
           {below, R"("contains": 1, "within": 1, "where": "m")", "line 22", {"'below' and 'above'"}},
           {below, R"("below": 1, "any": true)", "line 22", {"goes with 'where'"}},
           {below, R"("below": 1, "where": "m", "equal_within": 0.9)", "line 22", {"below 1"}},
           {below, R"("below": 1, "over": {"m": 8})", "line 22", {"another metric of the same cell"}},
           {below, R"("below": 1, "take": "average")", "line 22", {"'average'", "median"}},
           {below, R"("below": 1, "of": {"m": []})", "line 22", {"empty list"}},
           {below, R"("below": 1, "of": {"method": 3})", "line 22", {"a spec in quotes"}}}) {
    INFO(part << " -> " << other);
    const std::string message = refusal(replaced(good, part, other));
    INFO(message);
    CHECK(message.starts_with("small.recipe.json, " + line + ": "));
    for (const auto& words : says) CHECK(contains(message, words));
    CHECK(message.find('\n') == std::string::npos);
  }
  for (const auto& [part, other, line, says] : std::vector<Case>{
           {R"("performer", )", R"("perfomer", )", "line 6", {"did you mean performer"}},
           {R"("m=8,16")", R"("mm=8,16")", "line 6", {"mm"}},
           {R"("relative_output_error")", R"("relative_error")", "line 15", {"measures no 'relative_error'"}},
           {below, R"("below": 1, "of": {"run": "error"})", "line 15", {"no run", "did you mean errors?"}},
           {below, R"("below": 1, "of": {"m": 12})", "line 15", {"none of the 8 cells"}},
           {R"("cell")", R"("m")", "line 15", {"'of' leaves 4 cells", "'each'"}},
           {R"("cell")", R"(["method", "input", "codes"])", "line 15", {"'codes' is not a size or parameter"}},
           {R"("cell")", R"(["method", "input"], "over": {"projection": "iid"})", "line 15", {"none of"}},
           {R"("cell")", R"("cell", "take": "median of turns")", "line 15", {"measures no time"}},
           {R"("cell")", R"("cell", "take": "exact")", "line 15", {"32 replicates"}}}) {
    INFO(part << " -> " << other);
    const std::string message = refusal(replaced(good, part, other), true);
    INFO(message);
    CHECK(message.starts_with("small.recipe.json, " + line + ": "));
    for (const auto& words : says) CHECK(contains(message, words));
  }
}

TEST_CASE("a recipe file that could not be judged is refused before it runs", "[unit]") {
  const auto unsound = [](std::string text, RecipeSize size = RecipeSize::quick) {
    return misuse_of([&] { require_sound(parse_recipe(text, "small.recipe.json"), size); });
  };
  const std::string good = statement(R"("each": "cell", "below": 1)");
  CHECK_NOTHROW(require_sound(parse_recipe(good, "f"), RecipeSize::full));
  const auto with = [&](const std::string& part, const std::string& other) {
    std::string text = good;
    return text.replace(text.find(part), part.size(), other);
  };
  const std::string few = unsound(with(R"("replicates": 32)", R"("replicates": 8)"));
  CHECK(contains(few, "small.recipe.json: at size quick"));
  CHECK(contains(few, "no interval of error rate"));
  CHECK(contains(unsound(with(R"("cell")", R"("cell", "take": "mean")")), "no interval of error rate"));
  const std::string shrinks = unsound(with(R"("quick": 32)", R"("quick": 8)"));
  CHECK(contains(shrinks, "size quick plans"));
  CHECK(contains(shrinks, "smoke <= quick <= full"));
  CHECK_NOTHROW(require_sound(parse_recipe(with(R"("full": 64)", R"("full": 8)"), "f"), RecipeSize::quick));
  CHECK(contains(unsound(with(R"("full": 64)", R"("full": 8)"), RecipeSize::full), "size full plans"));
}

TEST_CASE("a panel of a recipe file has the fields of docs/figures.md", "[unit]") {
  const auto drawn = [](const std::string& panel) {
    const std::string figure = R"("figures": [{"name": "f", "title": "The figure at n = {n}", "caption": "c",
    "panels": [{"title": "p", "y": "relative_output_error")";
    const RecipeEntry entry = parse_recipe(head + figure + panel + "}]}]}", "small.recipe.json");
    const auto recipe = written(entry, RecipeSize::quick);
    return nlohmann::json::parse(recipe->figures(entry.text).at(0).json);
  };
  const auto figure = drawn(R"(, "x": "m", "cells": {"input": "gaussian:scale=2", "projection": "iid"},
    "x_scale": "log2", "series": ["method", "input"], "ratio_to": "performer:projection=orthogonal,m=64", "slope": true,
    "floor": 0.25, "first_index": 2, "range": [0, 1])");
  CHECK(figure["title"] == "The figure at n = 32");
  CHECK(figure["recipe_title"] == "A small recipe");
  CHECK(figure["statement"] == "Is it small?");
  const auto panel = figure["panels"][0];
  CHECK(panel["cells"].size() == 2);
  CHECK(panel["x"] == std::vector<std::string>{"m"});
  CHECK(panel["x_scale"] == "log2");
  CHECK(panel["y_scale"] == "linear");
  CHECK(panel["series"] == std::vector<std::string>{"method", "input"});
  CHECK(panel["ratio_to"] == "performer:m=64");
  CHECK((panel["slope"] == true && panel["crossing"] == false));
  CHECK(panel["floor"] == 0.25);
  CHECK(panel["first_index"] == 2);
  CHECK(panel["range"] == std::vector<double>{0, 1});
  CHECK(drawn(R"(, "x": ["m", "n"])")["panels"][0]["cells"].size() == 8);
  for (const auto& [text, says] : std::vector<std::pair<std::string, std::string>>{
           {"", "'x' is missing"},
           {R"(, "x": "m", "y_scal": "log2")", "y_scale?"},
           {R"(, "x": "m", "x_scale": "log")", "did you mean log2"},
           {R"(, "x": "m", "kind": "bars")", "'bars'"},
           {R"(, "x": "m", "interval": "mode")", "'mode'"},
           {R"(, "x": "m", "slope": 1)", "expected true or false"},
           {R"(, "x": "m", "range": [1])", "two numbers"},
           {R"(, "x": "m", "theory": "no_such")", "measures no 'no_such'"},
           {R"(, "x": "m", "cells": {"m": 12})", "none of the 8 cells"},
           {R"(, "x": "m", "ratio_to": "perfomer")", "did you mean performer"}}) {
    INFO(text);
    const std::string message = misuse_of([&, &given = text] { drawn(given); });
    INFO(message);
    CHECK(message.starts_with("small.recipe.json, line "));
    CHECK(contains(message, says));
  }
}

TEST_CASE("hostile JSON is refused in one line", "[unit]") {
  const auto message = [](const std::string& text) { return misuse_of([&] { parse_recipe(text, "f.json"); }); };
  std::string keys = "{";
  for (int i = 0; i < 1'000; ++i) keys += fmt::format("\"{}\": 1, ", i);
  for (const auto& text :
       {std::string(100'000, '['), "{\"name\": " + std::string(100'000, '{'), keys, std::string(2 << 20, ' '),
        std::string("{\"a\": \"\0\"}", 10), std::string("{\"a\": \"\xff\xfe\"}"), std::string("[1]"), std::string("7"),
        std::string("{\"name\": \"a\nb\"}"), std::string("{\"name\": \"a\\nb\"}"), std::string("/* a comment"),
        std::string()}) {
    INFO(text.substr(0, 20));
    const std::string one = message(text);
    CHECK(one.starts_with("f.json"));
    CHECK(one.size() < 500);
    CHECK(one.find('\n') == std::string::npos);
  }
  const std::string beginning = R"({"name": "a", "title": "t", "question": "q", )";
  CHECK(contains(message(beginning + R"("sizes": {"v": {"smoke": ")" + std::string(2'000, 'x') + R"(", "quick": 1}}})"),
                 "longer than 1000 characters"));
  const std::string run = R"({"experiment": "rank", "method": "softmax", "sweep": "n=1:100000:+1"})";
  CHECK(contains(message(beginning + "\"runs\": [" + run + ", " + run + "]}"), "values on the axes of all runs"));
}

TEST_CASE("the lines of a JSON file are those of its values, with comments", "[unit]") {
  const JsonObject file = parse_json("// a comment\n{ \"a\": [1,\n2.5], /* two\nlines */ \"b\":\n\n{\"c\": 7\n}}", "f");
  CHECK(file.at("a").line == 2);
  CHECK(file.at("a").as<JsonValue::List>()->at(1).line == 3);
  CHECK(file.object("b").place() == "f, line 6");
  CHECK(file.object("b").at("c").line == 6);
  CHECK(file.numbers("a") == std::vector<double>{1, 2.5});
  CHECK(file.object("b").number("c") == 7);
}

TEST_CASE("a recipe file has a name of its own, and what it is is told", "[end-to-end]") {
  const Folder folder;
  const auto write = [&](const std::string& file, const std::string& name) {
    std::string text = statement(R"("each": "cell", "below": 1)");
    std::ofstream(folder / file) << text.replace(text.find("\"small\""), 7, "\"" + name + "\"");
    return folder / file;
  };
  CHECK(names_recipe_file("mine.json"));
  CHECK_FALSE(names_recipe_file("time"));
  const std::string a = write("a.recipe.json", "of-a-file"), b = write("b.recipe.json", "of-a-file");
  const auto explained = program("reproduce --explain " + a + " " + folder.path() + "/./a.recipe.json");
  CHECK(explained.code == 0);  // the same file is no second recipe
  for (const char* line : {"of-a-file: A small recipe", "1. It is so", "this project's own finding"})
    CHECK(contains(explained.text, line));
  const auto described = program("describe " + a);
  CHECK(described.code == 0);
  for (const char* line : {"recipe of-a-file", "A small recipe", "  1. It is so\n"})
    CHECK(contains(described.text, line));
  for (const auto& [files, says] : std::vector<std::pair<std::string, std::string>>{
           {a + " " + b, "b.recipe.json: the name 'of-a-file' is taken by " + a + "; give the recipe another"},
           {write("c.recipe.json", "time"), "c.recipe.json: the name 'time' is taken by "},
           {folder / "none.recipe.json", "none.recipe.json: there is no such file"},
           {write("d.recipe.json", "a b"), "d.recipe.json, line 2: 'name' is 'a b'"}}) {
    const auto answer = program("reproduce --explain " + files);
    INFO(answer.text);
    CHECK(answer.code == 2);
    CHECK(contains(answer.text, says));
    CHECK(std::count(answer.text.begin(), answer.text.end(), '\n') == 1);
  }
}

}  // namespace attnbench
