// The conclusions of recipes in worlds where they are known: the direction of each comparison, which number is divided
// by which, how numbers are averaged, and where the bound lies. Quick sizes.
#include "tests/worlds/worlds.hpp"

#include "harness/runner/reproduce.hpp"
#include "tests/catch.hpp"
#include "tests/recipes/plannable.hpp"
#include "tests/runner/made_up.hpp"

namespace attnbench {
namespace worlds {

std::string Asked::option(const std::string& name) const {
  for (const Params* params : {&cell.method, &cell.input, &cell.experiment})
    if (params->has(name)) return params->text(name);
  return "";
}

std::vector<World>& all() {
  static std::vector<World> registered;
  return registered;
}

bool add(World world) {
  all().push_back(std::move(world));
  return true;
}

Numbers of(std::string metric, Numbers numbers) {
  return [metric = std::move(metric), numbers = std::move(numbers)](const Asked& asked) {
    return asked.metric == metric ? numbers(asked) : Answer();
  };
}

}  // namespace worlds

namespace {

// A world's numbers. All turns are of one session, and nothing disturbs them. Of what a world says nothing, numbers are
// arbitrary: a rule that reads another metric than it should gets another value.
MadeUp measurements_of(const worlds::World& world) {
  return MadeUp([&world](const Cell& cell, const std::string& metric) -> MadeUp::Number {
    const auto hash = std::hash<std::string>()(cell.method.spec() + cell.input_key() + metric);
    const double arbitrary = 0.5 + 0.5 * static_cast<double>(hash % 1000) / 1000;
    return [&world, cell, metric, arbitrary](Index replicate, size_t place) {
      if (metric == "disturbed") return 0.0;
      if (metric == "session") return 1.0;
      return world.numbers({cell, metric, replicate, place}).value_or(arbitrary);
    };
  });
}

const Verdict& verdict_of(const std::vector<Verdict>& verdicts, const std::string& statement) {
  std::vector<const Verdict*> found;
  for (const Verdict& verdict : verdicts)
    if (verdict.statement.text.starts_with(statement)) found.push_back(&verdict);
  INFO("statements that begin with: " << statement);
  REQUIRE(found.size() == 1);
  return *found[0];
}

}  // namespace

TEST_CASE("in a world where the answer is known, a recipe comes to it", "[recipes]") {
  for (const auto& world : worlds::all()) {
    const auto recipe = written(find<RecipeEntry>(world.recipe), RecipeSize::quick);
    const auto verdicts = recipe->verdicts(measurements_of(world));
    for (const auto& [statement, ruling, values] : world.known) {
      const Finding& finding = verdict_of(verdicts, statement).finding;
      INFO(world.recipe << ": " << statement << "\n" << finding.numbers << "\n" << finding.region);
      CHECK(to_string(finding.ruling) == to_string(ruling));
      if (values.empty()) continue;
      if (values.size() > 1) REQUIRE(finding.compared.size() == values.size());
      for (size_t i = 0; i < finding.compared.size(); ++i) {
        INFO("comparison " << i << ", " << finding.compared[i].what);
        CHECK(finding.compared[i].value == Approx(values[values.size() > 1 ? i : 0]).epsilon(1e-9).margin(1e-12));
      }
    }
  }
}

TEST_CASE("every statement whose numbers are computed by code has a world in tests/worlds", "[recipes]") {
  for (const auto& name : plannable_recipes(RecipeSize::quick))
    for (const Judgement& judgement : written(find<RecipeEntry>(name), RecipeSize::quick)->judgements()) {
      if (!judgement.by_code) continue;
      size_t count = 0;
      for (const auto& world : worlds::all())
        for (const auto& known : world.known)
          count += world.recipe == name && judgement.statement.text.starts_with(known.statement);
      INFO(name << ": " << judgement.statement.text);
      CHECK(count > 0);
    }
}

}  // namespace attnbench
