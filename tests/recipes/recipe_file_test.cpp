// Recipe files: what a file cannot mean is refused with its line, and every rule is the one of judge.hpp.
#include "harness/cli/recipe_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "harness/runner/data_file.hpp"
#include "harness/runner/declared_recipe.hpp"
#include "harness/runner/reproduce.hpp"
#include "harness/store/store.hpp"
#include "tests/folder.hpp"
#include "tests/misuse.hpp"
#include "tests/program.hpp"
#include "tests/runner/made_up.hpp"

namespace attnbench {
namespace {

namespace fs = std::filesystem;

// The smallest recipe: everything that a test does not change.
const std::string head = R"(name = "small"
title = "A small recipe"
question = "Is it small?"
[sizes]
n = {smoke = 16, quick = 32, full = 64}
[[runs]]
name = "errors"
experiment = "attention-error:matrix=false"
method = ["performer", "performer:projection=iid"]
input = ["gaussian", "gaussian:scale=2"]
n = "{n}"
sweep = "m=8,16"
replicates = 32
)";

// With a statement from line 14 on, whose further keys are on line 20 and after it.
std::string statement(const std::string& rest) {
  return head + R"([[statements]]
text = "It is so"
definition = "the error at n = {n}"
threshold = "1: equal errors"
because = "theory says so"
metric = "relative_output_error"
)" + rest +
         "\n";
}

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

}  // namespace

TEST_CASE("a recipe file's rules are judged as those of recipes in C++", "[recipes]") {
  const std::string iid = "of = {projection = \"iid\"}\n", orthogonal = "of = {projection = \"orthogonal\"}\n";
  const std::string over = "over = {projection = \"iid\"}\n", each = "each = [\"input\", \"m\"]\n";
  const std::string one = "of = {projection = \"orthogonal\", m = 8, input = \"gaussian\"}\n";
  const std::string by = "each = \"input\"\nwhere = \"m\"\n", cell = "each = \"cell\"\n";
  const std::string row_l1 = "over = {metric = \"row_l1\"}\n";
  struct Case {
    std::string rest;
    Ruling ruling;
    std::vector<double> values;
  };
  using enum Ruling;
  const std::vector<double> ratios{10. / 64, 10. / 256, 10. / 64, 10. / 256};  // (1 / m) / (m / 10), on both inputs
  const std::vector<double> own{0.8, 1.6, 1.6, 3.2};                           // of iid vectors
  const std::vector<double> by_m{0.125, 0.25, 0.0625, 0.125};
  for (const auto& [rest, ruling, values] :
       std::vector<Case>{{orthogonal + over + each + R"(below = 1)", holds, ratios},
                         {orthogonal + over + each + R"(below = 0.1)", refuted, ratios},
                         {orthogonal + over + each + R"(above = 0.1)", refuted, ratios},
                         {orthogonal + over + each + R"(above = 0.01)", holds, ratios},
                         {orthogonal + over + each + R"(between = [0.03, 0.2])", holds, ratios},
                         {orthogonal + over + each + R"(between = [0.05, 0.2])", refuted, ratios},
                         {orthogonal + over + each + R"(between = [0.03, 0.1])", refuted, ratios},
                         {orthogonal + over + each + "contains = 0.15625\nwithin = 0.1", refuted, ratios},
                         // A column that `over` sets itself replaces the column of `each`.
                         {"of = {input = \"gaussian\"}\neach = [\"projection\", \"m\"]\nover = {projection = \"iid\", "
                          "input = \"gaussian\"}\nbelow = 2",
                          holds,
                          {10. / 64, 10. / 256, 1, 1}},
                         {one + "contains = 0.125\nwithin = 0.1", holds, {0.125}},
                         {one + "contains = 0.126\nwithin = 0.1", refuted, {0.125}},
                         {orthogonal + by + R"(below = 0.26)", holds, by_m},
                         {orthogonal + by + R"(below = 0.2)", depends, by_m},
                         {orthogonal + by + R"(above = 0.1)", depends, by_m},
                         {orthogonal + by + R"(above = 0.3)", refuted, by_m},
                         {iid + by + "any = true\nbelow = 1.5", depends, own},
                         {iid + by + "any = true\nbelow = 1.7", holds, own},
                         {iid + by + R"(below = 1.7)", depends, own},
                         {iid + each + R"(below = "2 * 1.7")", holds, own},
                         {R"(at_most = 3.2)", holds, {3.2}},
                         {R"(at_most = 3.1)", refuted, {3.2}},
                         {R"(at_most = {metric = "row_l1"})", holds, {3.2}},
                         {iid + cell + row_l1 + R"(below = 0.65)", holds, {0.16, 0.32, 0.32, 0.64}},
                         {iid + cell + row_l1 + R"(below = 0.5)", refuted, {0.16, 0.32, 0.32, 0.64}},
                         {R"(at_most = "row_l1 - 1.9")", refuted, {3.2}},
                         {iid + cell + R"(report = [1])", measured, own}}) {
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

TEST_CASE("parts, against, beside, value and for make the comparisons that they say", "[recipes]") {
  const auto findings = [](const std::string& keys, const std::string& compares, const char* what = "It is so") {
    const std::string text = head + "[[statements]]\ntext = \"" + what + "\"\nthreshold = \"t\"\nbecause = \"b\"\n" +
                             keys + "\ncompares = " + compares + "\n";
    return verdicts_of(text, errors());
  };
  using Named = std::map<std::string, double>;
  const auto named = [](const Finding& finding) {
    Named all;
    for (const Compared& one : finding.compared) all[one.what] = one.value;
    return all;
  };
  const std::string narrow = R"(input = "gaussian")";
  const auto parts = findings("", R"({metric = "relative_output_error", where = "part", below = 0.5, parts = [
    {name = "few", of = {projection = "orthogonal", m = 8, )" +
                                      narrow + R"(}},
    {name = "many", of = {projection = "iid", m = 16, )" +
                                      narrow + R"(}}]})");
  CHECK(named(parts.at(0).finding) == Named{{"few", 0.125}, {"many", 1.6}});
  CHECK(parts.at(0).finding.ruling == Ruling::depends);
  const auto against = findings("", R"({metric = "relative_output_error", of = {projection = "orthogonal", m = 8, )" +
                                        narrow + R"(}, over = {projection = "iid"}, against = "m", below = 1})");
  CHECK(named(against.at(0).finding) == Named{{"against m = 8", 0.125 / 0.8}, {"against m = 16", 0.125 / 1.6}});
  const auto beside = findings("", R"({value = "relative_output_error * m / 8", each = "m", below = 0.2,
    of = {projection = "orthogonal", )" +
                                       narrow + R"(}, with = {other = {projection = "iid"}},
    beside = {other = "other.relative_output_error"}})");
  CHECK(named(beside.at(0).finding) ==
        Named{{"m = 8", 0.125}, {"m = 16", 0.125}, {"m = 8, other", 0.8}, {"m = 16, other", 1.6}});
  CHECK(beside.at(0).finding.ruling == Ruling::holds);  // not by what is beside
  const auto both =
      findings("", R"x({value = "greatest(relative_output_error) - least(over.relative_output_error)", report = [],
    of = {projection = "iid"}, over = {projection = "orthogonal"}})x");
  CHECK(both.at(0).finding.compared.at(0).value == Approx(3.2 - 0.0625));
  const auto each = findings(
      R"(for = [{m = 8, s = "few"}, {m = 16, s = "many"}]
source = "{s}"
paraphrase = "{m} of them")",
      R"({metric = "relative_output_error", of = {m = "{m}", projection = "iid", )" + narrow + R"(}, above = 1})",
      "With {m} it is so");
  REQUIRE(each.size() == 2);
  CHECK(each[0].statement.source == "few");
  CHECK(each[1].statement.paraphrase == "{m} of them");
  CHECK((each[0].finding.ruling == Ruling::refuted && each[1].finding.ruling == Ruling::holds));
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
  const Finding most = found(R"(at_most = 10)");
  CHECK(most.ruling == Ruling::open);
  CHECK(contains(most.numbers, "; 4 of 8 cells have no such number"));
  CHECK(found(R"(at_most = 0.1)").ruling == Ruling::refuted);
  CHECK(found("each = \"cell\"\nbelow = 10").ruling == Ruling::open);
  CHECK(found("each = \"cell\"\nbelow = 0.1").ruling == Ruling::refuted);
}

TEST_CASE("a recipe file names the region where a statement holds, and its boundary on an axis", "[recipes]") {
  const auto region = [](const std::string& rest) {
    return verdicts_of(statement("of = {projection = \"iid\", input = \"gaussian\"}\nwhere = \"m\"\n" + rest), errors())
        .at(0)
        .finding.region;
  };
  // m / 10 crosses 1 at m = 10.
  CHECK(region(R"(below = 1)") == "holds up to m = 8, fails from 16 on; the boundary is at about 10");
  CHECK(region(R"(above = 1)") == "fails up to m = 8, holds from 16 on; the boundary is at about 10");
}

TEST_CASE("the intervals of a statement in a file share its error rate", "[recipes]") {
  const auto ends = [](const std::string& rest) {
    const MadeUp numbers([](const Cell&, const std::string&) {
      return [](Index replicate, size_t) { return static_cast<double>(replicate); };
    });
    const Compared one = verdicts_of(statement(rest), numbers).at(0).finding.compared.at(0);
    return std::pair(one.low, one.high);
  };
  const auto of_one = ends("report = [0]\nof = {projection = \"iid\", input = \"gaussian\", m = 8}");
  const auto of_eight = ends("report = [0]\neach = \"cell\"");
  Samples replicates;
  for (Index r = 0; r < 32; ++r) replicates[r] = static_cast<double>(r);
  const Estimate one = median_of(replicates, verdict_error_rate), eight = median_of(replicates, verdict_error_rate / 8);
  CHECK(of_one == std::pair(one.interval.low, one.interval.high));
  CHECK(of_eight == std::pair(eight.interval.low, eight.interval.high));
  CHECK(one.interval.low > eight.interval.low);
}

TEST_CASE("a recipe file compares turns block by block, and takes means and single numbers", "[recipes]") {
  const std::string timed = R"(name = "timed"
title = "t"
question = "q"
[[runs]]
experiment = "speed:blocks=32,turn=0.01"
method = ["linear", "softmax"]
n = [64, 128]
[[statements]]
text = "It doubles"
definition = "d"
threshold = "t"
because = "b"
metric = "seconds"
each = "method"
of = {n = 128}
over = {n = 64}
between = [1.9, 4.1])";
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
    draws.replace(draws.find("replicates = 32"), 15, "replicates = " + replicates);
    return draws;
  };
  const MadeUp skewed([](const Cell&, const std::string&) {
    return [](Index replicate, size_t) { return replicate % 4 == 0 ? 4.0 : 0.0; };
  });
  const std::string one = R"(of = {projection = "iid", input = "gaussian", m = 8}
report = [0]
take = )";
  CHECK(verdicts_of(drawn("64", one + "\"mean\""), skewed).at(0).finding.compared.at(0).value == Approx(1));
  CHECK(verdicts_of(drawn("64", one + "\"median\""), skewed).at(0).finding.compared.at(0).value == 0);
  const auto exact = verdicts_of(drawn("1", one + "\"exact\""), skewed).at(0).finding.compared.at(0);
  CHECK((exact.value == 4 && exact.low == 4 && exact.high == 4 && exact.count == 1));
}

TEST_CASE("each size of a recipe file has its own values, and a full size without one has those of quick",
          "[recipes]") {
  const std::string text = statement("of = {projection = \"iid\"}\neach = [\"input\", \"m\"]\nbelow = 1");
  const RecipeEntry entry = parse_recipe(text, "small.recipe.toml");
  for (const auto& [size, n] : {std::pair{RecipeSize::smoke, 16}, {RecipeSize::quick, 32}, {RecipeSize::full, 64}}) {
    const auto recipe = written(entry, size);
    CHECK(recipe->cells().size() == 8);
    for (const RecipeCell& cell : recipe->cells().all()) CHECK(cell.asked.problem.shape.nk == n);
    CHECK(
        recipe->statements().at(0).definition ==
        fmt::format(
            "the error at n = {0}. n = {0}, d = 64, bidirectional, 32 draws. 4 numbers; holds if all lie below 1", n));
  }
  std::string without = text;
  without.replace(without.find(", full = 64"), 11, "");
  CHECK(written(parse_recipe(without, "f"), RecipeSize::full)->cells().all().at(0).asked.problem.shape.nk == 32);
  // The words of others are never changed, and braces around anything but a name are text.
  const std::string braces = R"([[statements]]
text = """
{-1, 1} and
   {n}"""
source = "Somebody {n}"
quotation = "{n} is"
definition = "d"
threshold = "t"
because = "b"
metric = "relative_output_error"
at_most = 1)";
  const auto quoted = written(parse_recipe(head + braces, "f"), RecipeSize::quick)->statements().at(0);
  CHECK(quoted.text == "{-1, 1} and 32");
  CHECK(quoted.source == "Somebody {n}");
  CHECK(quoted.quotation == "{n} is");
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
    const std::string further = word == "not seen"  ? "\nsource = \"A\"\nquotation = \"q\"\nsetting = \"smaller\""
                                : word == "depends" ? "\nwhere = \"m\""
                                                    : "",
                      text = statement("each = \"cell\"\nbelow = 1\nexpected = \"" + word + '"' + further);
    named.insert(written(parse_recipe(text, "f"), RecipeSize::quick)->statements().at(0).expected);
    begin = end + 1;
  }
  CHECK(named == std::set<Ruling>{Ruling::holds, Ruling::refuted, Ruling::not_seen, Ruling::depends, Ruling::open});
}

TEST_CASE("a file that is no recipe is refused with its line, what it has and what was expected", "[unit]") {
  const auto replaced = [](std::string text, const std::string& part, const std::string& other) {
    REQUIRE(text.find(part) != std::string::npos);
    return text.replace(text.find(part), part.size(), other);
  };
  const std::string good = statement("each = \"cell\"\nbelow = 1");
  CHECK_NOTHROW(written(parse_recipe(good, "f"), RecipeSize::quick));
  struct Case {
    std::string part, other, line;
    std::vector<std::string> says;
  };
  const std::string below = "below = 1", because = "because = \"theory says so\"";
  for (const auto& [part, other, line, says] : std::vector<Case>{
           {R"("small")", "small", "line 1", {"not TOML"}},
           {R"("small")", R"("a small one")", "line 1", {"'a small one'", "letters"}},
           {"name = \"small\"", "", "line 1", {"'name' is missing"}},
           {"title =", "titel =", "line 2", {"'titel'", "did you mean title?"}},
           {R"("A small recipe")", "3", "line 2", {"'title' is an integer; expected a string"}},
           {R"("A small recipe")", R"(["A", ["b"]])", "line 2", {"'title' is a list; expected a string"}},
           {R"("A small recipe")", "2026-11-30", "line 2", {"a date"}},
           {R"("A small recipe")", "\"A\"\nname = \"b\"", "line 3", {"not TOML", "name"}},
           {"smoke = 16, ", "", "line 5", {"'smoke' is missing"}},
           {"smoke =", "tiny = 1, smoke =", "line 5", {"'tiny'", "known: smoke, quick, full"}},
           {"smoke = 16", "smoke = {a = 1}", "line 5", {"'n' is a table"}},
           {"[[runs]]", "[x]", "line 6", {"'x'"}},
           {R"(n = "{n}")", R"(n = "{m}")", "line 11", {"names {m}", "n"}},
           {R"(n = "{n}")", "n = [[1]]", "line 11", {"'n' is a list"}},
           {R"(n = "{n}")", "n = []", "line 11", {"'n' is an empty list"}},
           {R"(n = "{n}")", "n = -3", "line 6", {"--n -3"}},
           {R"(n = "{n}")", "threads = 2", "line 6", {"no option 'threads'"}},
           {R"(method = ["performer", "performer:projection=iid"])", "", "line 6", {"no --method"}},
           {"replicates = 32", R"(until = "rel-ci=0.1")", "line 6", {"no option 'until'"}},
           {"replicates = 32", R"(match = "seconds=1")", "line 6", {"every machine"}},
           {R"(input = ["gaussian", "gaussian:scale=2"])",
            R"(heads = "teling")",
            "line 10",
            {"'teling'", "did you mean telling"}},
           {"attention-error:", "attention-eror:", "line 6", {"attention-eror", "did you mean attention-error"}},
           {R"(text = "It is so")", "", "line 14", {"'text' is missing"}},
           {R"("It is so")", R"("")", "line 15", {"'text' is empty"}},
           {because, "cause = \"x\"", "line 18", {"a statement has no 'cause'", "because"}},
           {R"(threshold = "1: equal errors")", "", "line 14", {"'threshold' is missing"}},
           {because, because + "\nsource = \"Somebody 2020\"", "line 14", {"'quotation'"}},
           {because, because + "\nquotation = \"words\"", "line 14", {"'source'"}},
           {because, because + "\nexpected = \"hold\"", "line 19", {"did you mean holds?"}},
           {below, "", "line 14", {"without a rule", "at_most"}},
           {below, "below = 1\nabove = 0", "line 14", {"both 'below' and 'above'"}},
           {below, R"(below = "one")", "line 21", {"'below' names 'one'; expected a number"}},
           {below, R"(below = "1 +")", "line 14", {"character 4", "expected a number"}},
           {below, "below = inf", "line 21", {"NaN or infinite"}},
           {below, "between = [2, 1]", "line 21", {"lower and the upper"}},
           {below, "contains = 1", "line 21", {"'contains' needs 'within'"}},
           {below, "below = 1\nexpected = \"depends\"", "line 22", {"needs 'where'"}},
           {below, "below = 1\nexpected = \"not seen\"", "line 22", {"without 'setting'", "REFUTED"}},
           {below, "below = 1\nsetting = \"smaller\"", "line 22", {"there is no 'source'"}},
           {below, "below = 1\nparts = []", "line 22", {"empty list"}},
           {below, "contains = 1\nwithin = 0", "line 22", {"not above 0"}},
           {below, "below = 1\nwithin = 1", "line 22", {"goes with 'contains'"}},
           {below, "report = [1]\nexpected = \"holds\"", "line 22", {"decides nothing"}},
           {below, "at_most = 1\ntake = \"mean\"", "line 22", {"'take' does not go with 'at_most'"}},
           {below, "grows = \"n^3\"", "line 21", {"'n^3'", "n^2"}},
           {below, "grows = \"n\"\nvalue = \"1\"", "line 22", {"'value' does not go with 'grows'"}},
           {below, "contains = 1\nwithin = 1\nwhere = \"m\"", "line 23", {"'below' and 'above'"}},
           {below, "contains = 1\nwithin = 1\nany = true", "line 23", {"goes with 'below' and 'above'"}},
           {below, "below = 1\nwhere = \"m\"\nequal_within = 0.9", "line 23", {"below 1"}},
           {below, "below = 1\ntake = \"average\"", "line 22", {"'average'", "median"}},
           {below, "below = 1\nelements = 4", "line 22", {"median of elements"}},
           {below, "below = 1\nvalue = \"1\"", "line 22", {"'metric' exclude each other"}},
           {below, "below = 1\nof = {m = []}", "line 22", {"empty list"}},
           {below, "below = 1\nof = {method = 3}", "line 22", {"a spec in quotes"}},
           {below, "below = 1\nfor = {a = 1}", "line 22", {"'a' is no list"}},
           {below, "below = 1\nfor = {a = [{b = 1}]}", "line 22", {"'a'"}}}) {
    INFO(part << " -> " << other);
    const std::string message = refusal(replaced(good, part, other));
    INFO(message);
    CHECK(message.starts_with("small.recipe.toml, " + line + ": "));
    for (const auto& words : says) CHECK(contains(message, words));
    CHECK(message.find('\n') == std::string::npos);
  }
  for (const auto& [part, other, line, says] : std::vector<Case>{
           {R"("performer", )", R"("perfomer", )", "line 6", {"did you mean performer"}},
           {R"("m=8,16")", R"("mm=8,16")", "line 6", {"mm"}},
           {R"("relative_output_error")", R"("relative_error")", "line 14", {"measures no 'relative_error'"}},
           {below, "below = 1\nof = {run = \"error\"}", "line 14", {"no run", "did you mean errors?"}},
           {below, "below = 1\nof = {m = 12}", "line 14", {"none of the 8 cells", "their m is 16; 8"}},
           {below, "below = 1\nof = {methd = 12}", "line 14", {"none has a column 'methd'; did you mean m, method"}},
           {R"("cell")", R"("m")", "line 14", {"'of' leaves 4 cells", "'each'"}},
           {R"("cell")", R"(["method", "input", "codes"])", "line 14", {"'codes' is not a column of"}},
           {R"("cell")", R"(["method", "input_nam"])", "line 14", {"did you mean input, input_name"}},
           {R"("cell")", "[\"method\", \"input\"]\nover = {projection = \"iid\"}", "line 14", {"none of"}},
           {R"("cell")", "\"cell\"\nover = {metric = \"flops\"}", "line 14", {"unit 1", "unit FLOP"}},
           {R"(metric = "relative_output_error")", R"(value = "other.flops")", "line 14", {"no selection", "'other'"}},
           {R"(metric = "relative_output_error")", R"(value = "flop")", "line 14", {"measures no 'flop'", "flops"}},
           {R"("cell")", "\"cell\"\ntake = \"exact\"", "line 14", {"32 replicates"}},
           {below, "grows = \"n\"", "line 14", {"'grows' judges times", "exponent(relative_output_error, n)"}}}) {
    INFO(part << " -> " << other);
    const std::string message = refusal(replaced(good, part, other), true);
    INFO(message);
    CHECK(message.starts_with("small.recipe.toml, " + line + ": "));
    for (const auto& words : says) CHECK(contains(message, words));
  }
}

TEST_CASE("a recipe file that could not be judged is refused before it runs", "[unit]") {
  const auto unsound = [](std::string text, RecipeSize size = RecipeSize::quick) {
    return misuse_of([&] { require_sound(parse_recipe(text, "small.recipe.toml"), size); });
  };
  const std::string good = statement("each = \"cell\"\nbelow = 1");
  CHECK_NOTHROW(require_sound(parse_recipe(good, "f"), RecipeSize::full));
  const auto with = [&](const std::string& part, const std::string& other) {
    std::string text = good;
    return text.replace(text.find(part), part.size(), other);
  };
  const std::string few = unsound(with("replicates = 32", "replicates = 8"));
  CHECK(contains(few, "small.recipe.toml: at size quick"));
  CHECK(contains(few, "no interval of error rate"));
  CHECK(contains(unsound(with("\"cell\"", "\"cell\"\ntake = \"mean\"")), "no interval of error rate"));
  const std::string shrinks = unsound(with(R"(quick = 32)", R"(quick = 8)"));
  CHECK(contains(shrinks, "size quick plans"));
  CHECK(contains(shrinks, "smoke <= quick <= full"));
  CHECK_NOTHROW(require_sound(parse_recipe(with(R"(full = 64)", R"(full = 8)"), "f"), RecipeSize::quick));
  CHECK(contains(unsound(with(R"(full = 64)", R"(full = 8)"), RecipeSize::full), "size full plans"));
}

TEST_CASE("a panel of a recipe file has the fields of docs/figures.md", "[unit]") {
  const auto drawn = [](const std::string& panel) {
    const std::string figure = R"([[figures]]
name = "f"
title = "The figure at n = {n}"
caption = "c."
[[figures.panels]]
title = "p"
y = "relative_output_error"
)";
    const RecipeEntry entry = parse_recipe(head + figure + panel, "small.recipe.toml");
    const auto recipe = written(entry, RecipeSize::quick);
    return nlohmann::json::parse(recipe->figures(entry.text).at(0).json);
  };
  const auto figure = drawn(
      "\nx = \"m\"\ncells = {input = \"gaussian:scale=2\", projection = \"iid\"}\nx_scale = \"log2\"\nseries = "
      "[\"method\", \"input\"]\nratio_to = \"performer:projection=orthogonal,m=64\"\nslope = true\nfloor = "
      "0.25\nfirst_index = 2\nrange = [0, 1]");
  CHECK(figure["title"] == "The figure at n = 32");
  CHECK(figure["recipe_title"] == "A small recipe");
  CHECK(figure["statement"] == "Is it small?");
  const auto panel = figure["panels"][0];
  CHECK(panel["cells"].size() == 2);
  CHECK(panel["x"] == std::vector<std::string>{"m"});
  CHECK(panel["x_scale"] == "log2");
  CHECK(panel["y_scale"] == "log10");  // as the metric says
  CHECK(panel["series"] == std::vector<std::string>{"method", "input"});
  CHECK(panel["ratio_to"] == "performer:m=64");
  CHECK((panel["slope"] == true && panel["crossing"] == false));
  CHECK(panel["floor"] == 0.25);
  CHECK(panel["first_index"] == 2);
  CHECK(panel["range"] == std::vector<double>{0, 1});
  CHECK(drawn("\nx = [\"m\", \"n\"]")["panels"][0]["cells"].size() == 8);
  CHECK(
      contains(misuse_of([&] { drawn("\nx = \"input_nam\""); }), "none of the cells; did you mean input, input_name"));
  for (const auto& [text, says] : std::vector<std::pair<std::string, std::string>>{
           {"", "'x' is missing"},
           {"\nx = \"m\"\ny_scal = \"log2\"", "y_scale?"},
           {"\nx = \"m\"\nx_scale = \"log\"", "did you mean log2"},
           {"\nx = \"m\"\nkind = \"bars\"", "'bars'"},
           {"\nx = \"m\"\ninterval = \"mode\"", "'mode'"},
           {"\nx = \"m\"\nslope = 1", "expected true or false"},
           {"\nx = \"m\"\nrange = [1]", "two numbers"},
           {"\nx = \"m\"\ntheory = \"no_such\"", "measures no 'no_such'"},
           {"\nx = \"m\"\ncells = {m = 12}", "none of the 8 cells"},
           {"\nx = \"m\"\nseries = \"methd\"", "did you mean m, method"},
           {"\nx = \"m\"\nratio_to = \"perfomer\"", "did you mean performer"}}) {
    INFO(text);
    const std::string message = misuse_of([&, &given = text] { drawn(given); });
    INFO(message);
    CHECK(message.starts_with("small.recipe.toml, line "));
    CHECK(contains(message, says));
  }
}

TEST_CASE("hostile text is refused in one line", "[unit]") {
  const auto message = [](const std::string& text) { return misuse_of([&] { parse_recipe(text, "f.toml"); }); };
  std::string keys;
  for (int i = 0; i < 1'000; ++i) keys += fmt::format("k{} = 1\n", i);
  for (const auto& text :
       {std::string(100'000, '['), "name = " + std::string(100'000, '['),
        "a = " + std::string(50, '[') + "1" + std::string(50, ']'), keys, std::string(2 << 20, ' '),
        std::string("a = \"\0\"", 8), std::string("a = \"\xff\xfe\""), std::string("[=1"), std::string("[1]"),
        std::string("7"), std::string("[[=]]"), std::string("a.b.=1"), std::string("name = \"a\nb\""),
        std::string("name = \"a\\nb\""), std::string("\"\"\" a text"), std::string()}) {
    INFO(text.substr(0, 20));
    const std::string one = message(text);
    CHECK(one.starts_with("f.toml"));
    CHECK(one.size() < 500);
    CHECK(one.find('\n') == std::string::npos);
  }
  const std::string beginning = "name = \"a\"\ntitle = \"t\"\nquestion = \"q\"\n";
  CHECK(contains(message(beginning + "[sizes]\nv = {smoke = \"" + std::string(2'000, 'x') + "\", quick = 1}"),
                 "longer than 1000 characters"));
  const std::string run = "[[runs]]\nexperiment = \"rank\"\nmethod = \"softmax\"\nsweep = \"n=1:100000:+1\"\n";
  CHECK(contains(message(beginning + run + run), "values on the axes of all runs"));
}

TEST_CASE("the lines of a file are those of its values, in the order of the file", "[unit]") {
  const DataTable file = parse_toml("# a comment\nz = [1,\n2.5]\n[b]\n\nc = 7\n", "f");
  CHECK(file.keys() == std::vector<std::string>{"z", "b"});
  CHECK(file.at("z").line == 2);
  CHECK(file.at("z").as<DataValue::List>()->at(1).line == 3);
  CHECK(file.table("b").place() == "f, line 4");
  CHECK(file.table("b").at("c").line == 6);
  CHECK(file.numbers("z") == std::vector<double>{1, 2.5});
  CHECK(file.table("b").number("c") == 7);
}

TEST_CASE("a recipe in JSON is read as before, and new writes the same in TOML", "[end-to-end]") {
  const Folder folder;
  const std::string json = folder / "old.recipe.json";
  std::ofstream(json) << R"({"name": "old", "title": "t", "question": "q", // a comment
    "sizes": {"n": {"smoke": 16, "quick": 32}},
    "runs": [{"experiment": "attention-error:matrix=false", "method": ["performer", "uniform"], "n": "{n}", "replicates": 32}],
    "figures": [{"name": "f", "title": "t", "caption": ["two", "lines"], "panels": [{"title": "p", "x": "n", "y": "flops"}]}],
    "statements": [{"text": ["It", "is so"], "threshold": "t", "because": "say \"so\"", "metric": "relative_output_error",
      "of": {"method": "performer"}, "over": {"method": "uniform"}, "take": "median", "below": 1.5}]})";
  const auto old = program("reproduce --explain " + json);
  CHECK(old.code == 0);
  CHECK(contains(old.text, "attnbench new recipe --from"));
  const auto made = program("new recipe --from " + json);
  INFO(made.text);
  REQUIRE(made.code == 0);
  const auto now = program("reproduce --explain " + (folder / "old.recipe.toml"));
  CHECK(now.code == 0);
  CHECK(contains(old.text, now.text));
  CHECK(program("new recipe --from " + json).code == 2);  // it is there already
}

TEST_CASE("a recipe file has a name of its own, and what it is is told", "[end-to-end]") {
  const Folder folder;
  const auto write = [&](const std::string& file, const std::string& name) {
    std::string text = statement("each = \"cell\"\nbelow = 1");
    std::ofstream(folder / file) << text.replace(text.find("\"small\""), 7, "\"" + name + "\"");
    return folder / file;
  };
  CHECK(names_recipe_file("mine.toml"));
  CHECK_FALSE(names_recipe_file("time"));
  const std::string a = write("a.recipe.toml", "of-a-file"), b = write("b.recipe.toml", "of-a-file");
  const auto explained = program("reproduce --explain " + a + " " + folder.path() + "/./a.recipe.toml");
  CHECK(explained.code == 0);  // the same file is no second recipe
  for (const char* line : {"of-a-file: A small recipe", "1. It is so", "this project's own finding"})
    CHECK(contains(explained.text, line));
  const auto described = program("describe " + a);
  CHECK(described.code == 0);
  for (const char* line : {"recipe of-a-file", "A small recipe", "  1. It is so\n"})
    CHECK(contains(described.text, line));
  for (const auto& [files, says] : std::vector<std::pair<std::string, std::string>>{
           {a + " " + b, "b.recipe.toml: the name 'of-a-file' is taken by " + a + "; give the recipe another"},
           {write("c.recipe.toml", "time"), "c.recipe.toml: the name 'time' is taken by "},
           {folder / "none.recipe.toml", "none.recipe.toml: there is no such file"},
           {write("d.recipe.toml", "a b"), "d.recipe.toml, line 1: 'name' is 'a b'"}}) {
    const auto answer = program("reproduce --explain " + files);
    INFO(answer.text);
    CHECK(answer.code == 2);
    CHECK(contains(answer.text, says));
    CHECK(std::count(answer.text.begin(), answer.text.end(), '\n') == 1);
  }
}

}  // namespace attnbench
