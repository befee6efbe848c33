// For every statement of a recipe file, measurements are made up under which it must hold, fail, and stay undecided or
// depend on the region: a statement whose numbers cannot be made to do so compares something else than it says, such as
// a cell with itself.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "harness/runner/recipe.hpp"
#include "harness/runner/reproduce.hpp"
#include "tests/catch.hpp"
#include "tests/misuse.hpp"
#include "tests/recipes/plannable.hpp"
#include "tests/worlds/worlds.hpp"

namespace attnbench {
namespace {

// A metric of a cell.
using Place = std::pair<std::string, std::string>;

// 1 everywhere, unless something else was set; two numbers alternate over replicates and places of an array.
class Alternating final : public Measurements {
 public:
  std::map<Place, std::pair<double, double>> numbers;
  mutable std::vector<Place> asked;  // in order

  Samples scalars(const RecipeCell& cell, const std::string& key, const std::string& metric) const override {
    Samples all;
    for (Index r = 0; r < cell.replicates; ++r) all[r] = at(key, metric, static_cast<size_t>(r));
    return all;
  }
  std::map<Index, std::vector<double>> arrays(const RecipeCell& cell, const std::string& key, const std::string& metric,
                                              size_t length) const override {
    std::map<Index, std::vector<double>> all;
    for (Index r = 0; r < cell.replicates; ++r)
      for (size_t i = 0; i < length; ++i) all[r].push_back(at(key, metric, i));
    return all;
  }

 private:
  double at(const std::string& key, const std::string& metric, size_t place) const {
    if (metric == "disturbed") return 0;
    if (asked.empty() || asked.back() != Place(key, metric)) asked.emplace_back(key, metric);
    const auto found = numbers.find({key, metric});
    return found == numbers.end() ? 1 : place % 2 == 0 ? found->second.first : found->second.second;
  }
};

enum class Side { lies, fails };

// On which side a number is, if it is clear of the bound by a margin.
std::optional<Side> side_of(double value, double bound, const Rule& rule) {
  const double margin = 1e-6 * std::max(1.0, std::abs(bound)), equal = rule.equal_within;
  using Kind = Rule::Kind;
  switch (rule.kind) {
    case Kind::below:
      if (value < bound - margin) return Side::lies;
      return value > bound * (bound > 0 ? equal : 1) + margin ? std::optional(Side::fails) : std::nullopt;
    case Kind::above:
      if (value > bound + margin) return Side::lies;
      return value < bound / (bound > 0 ? equal : 1) - margin ? std::optional(Side::fails) : std::nullopt;
    case Kind::between:
      if (value > rule.bound + margin && value < rule.high - margin) return Side::lies;
      return value < rule.bound - margin || value > rule.high + margin ? std::optional(Side::fails) : std::nullopt;
    case Kind::contains:
      if (std::abs(value - bound) <= 1e-12 * std::max(1.0, std::abs(bound))) return Side::lies;
      return std::abs(value - bound) > rule.resolution ? std::optional(Side::fails) : std::nullopt;
    default:  // at_most
      return value <= bound ? Side::lies : value > bound + margin ? std::optional(Side::fails) : std::nullopt;
  }
}

const std::vector<double>& candidates() {
  static std::vector<double> all{1, 0};
  if (all.size() > 2) return all;
  for (double size = 1.04; size < 1e8; size *= size < 4 ? 1.2 : 3)
    for (const double value : {size, 1 / size, -size, -1 / size}) all.push_back(value);
  for (double whole = 2; whole <= 64; ++whole) all.push_back(whole);          // ranks
  for (double power = 128; power <= 65536; power *= 2) all.push_back(power);  // of n, for exponents
  return all;
}

Ruling ruling_in(const Judgement& judgement) { return judged(judgement, verdict_error_rate).ruling; }
bool is_open(Ruling ruling) { return ruling == Ruling::open || ruling == Ruling::depends; }

class Search {
 public:
  Search(const Judgement& judgement, Alternating& world) : judgement_(judgement), world_(world) {}

  // Sets measurements so that the number lies on that side, and the numbers before it where they were put; true if it
  // does.
  bool put(const Number& number, Side side) {
    const bool there =
        is(number, side) || put_by(number, side, false) || (before_.size() < 30 && put_by(number, side, true));
    for (const Place& place : places_of(number)) fixed_.insert(place);
    before_.emplace_back(&number, side);
    return there;
  }

  // Sets one measurement so that the number alternates between both sides; true if the ruling is then open.
  bool split(const Number& number) {
    for (const Place& place : places_of(number)) {
      const auto before = world_.numbers;
      const auto [one, other] = around(number, place);
      world_.numbers = before;
      if (!one || !other) continue;
      world_.numbers[place] = {*one, *other};
      if (is_open(ruling_in(judgement_))) return true;
      world_.numbers = before;
    }
    return false;
  }

 private:
  // By one measurement: one that no number before it has, or any.
  bool put_by(const Number& number, Side side, bool any) {
    for (const Place& place : places_of(number)) {
      if (!any && fixed_.contains(place)) continue;
      const auto before = world_.numbers;
      for (const double value : candidates()) {
        world_.numbers[place] = {value, value};
        if (is(number, side) && (!any || others_stay())) return true;
      }
      if (exact_for(number, place, side)) return true;
      world_.numbers = before;
    }
    return false;
  }

  // Values of a measurement at which the number is just below and just above its bound; far beyond the resolution of a
  // rule that an interval contains a value.
  std::pair<std::optional<double>, std::optional<double>> around(const Number& number, const Place& place) {
    const Rule& rule = judgement_.rule;
    const double apart = std::max({20 * rule.resolution, 1e-3, 2 * (rule.equal_within - 1) * std::abs(rule.bound)});
    std::optional<double> low, high;
    double to_low = 0, to_high = 0;
    for (const double value : candidates()) {
      world_.numbers[place] = {value, value};
      const Samples samples = number.samples();
      if (samples.empty() || (judgement_.take == Take::mean_of_logs && samples.begin()->second <= 0)) continue;
      const double off = samples.begin()->second - rule.bound;
      if (off < -apart && (!low || off > to_low)) low = value, to_low = off;
      if (off > apart && (!high || off < to_high)) high = value, to_high = off;
    }
    return {low, high};
  }

  bool others_stay() const {
    return std::all_of(before_.begin(), before_.end(), [&](const auto& one) { return is(*one.first, one.second); });
  }

  std::vector<Place> places_of(const Number& number) const {
    world_.asked.clear();
    number.samples();
    std::vector<Place> all;
    for (const Place& place : world_.asked)
      if (std::find(all.begin(), all.end(), place) == all.end()) all.push_back(place);
    return all;
  }

  bool is(const Number& number, Side side) const {
    const Samples samples = number.samples();
    if (samples.empty()) return false;
    const double bound = number.bounds ? number.bounds().begin()->second : judgement_.rule.bound;
    return std::all_of(samples.begin(), samples.end(), [&](const auto& sample) {
      return std::isfinite(sample.second) && side_of(sample.second, bound, judgement_.rule) == side &&
             (judgement_.take != Take::mean_of_logs || sample.second > 0);
    });
  }

  // contains: the value of a measurement at which the number is the bound, by bisection.
  std::optional<double> exact_for(const Number& number, const Place& place, Side side) {
    if (judgement_.rule.kind != Rule::Kind::contains || side != Side::lies) return std::nullopt;
    const auto off = [&](double value) {
      world_.numbers[place] = {value, value};
      const Samples samples = number.samples();
      return samples.empty() ? std::nan("") : samples.begin()->second - judgement_.rule.bound;
    };
    double low = -1e3, high = 1e3;
    const double at_low = off(low), at_high = off(high);
    if (!(at_low * at_high < 0)) return std::nullopt;
    for (int i = 0; i < 200; ++i) (off((low + high) / 2) * at_low > 0 ? low : high) = (low + high) / 2;
    off(high);
    return is(number, side) ? std::optional(high) : std::nullopt;
  }

  const Judgement& judgement_;
  Alternating& world_;
  std::set<Place> fixed_;
  std::vector<std::pair<const Number*, Side>> before_;
};

// The number that cannot be put on that side; nothing if all are.
std::string not_on(const Judgement& judgement, Alternating& world, Side side) {
  world.numbers.clear();
  Search search(judgement, world);
  for (const Number& number : judgement.numbers)
    if (!search.put(number, side)) return number.region + " " + number.what + " ";
  return "";
}

// Statements whose numbers hang together, such as rank correlations, have worlds by hand.
bool has_world(const std::string& recipe, const Judgement& judgement) {
  const auto& all = worlds::all();
  return std::any_of(all.begin(), all.end(), [&](const worlds::World& world) {
    return world.recipe == recipe && std::any_of(world.known.begin(), world.known.end(), [&](const auto& known) {
             return judgement.statement.text.starts_with(known.statement);
           });
  });
}

// At most some 12 numbers, over all regions: those left out are computed like these.
void keep_some(Judgement& judgement) {
  const size_t step = judgement.numbers.size() / 12 + 1;
  std::vector<Number> some;
  for (size_t i = 0; i < judgement.numbers.size(); ++i)
    if (i % step == 0 || some.back().region != judgement.numbers[i].region) some.push_back(judgement.numbers[i]);
  judgement.numbers = some;
}

// Open or DEPENDS: in the first region the statement holds and in the others it fails, or one number is on both sides.
bool mixed(const Judgement& judgement, Alternating& world) {
  world.numbers.clear();
  const std::string first = judgement.numbers.front().region;
  if (judgement.rule.by_region && judgement.numbers.back().region != first) {
    Search search(judgement, world);
    for (const Number& number : judgement.numbers)
      if (!search.put(number, number.region == first ? Side::lies : Side::fails)) return false;
    return is_open(ruling_in(judgement));
  }
  if (!not_on(judgement, world, Side::lies).empty()) return false;
  Search search(judgement, world);
  return std::any_of(judgement.numbers.begin(), judgement.numbers.end(),
                     [&](const Number& number) { return search.split(number); });
}

std::string text_of(const std::string& file) {
  std::ifstream stream(std::filesystem::path(ATTNBENCH_SOURCE_DIR) / file);
  REQUIRE(stream);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// Checks the statements of recipe files that name a language model, or those of all other files.
void check_statements(bool of_language_models) {
  size_t statements = 0;
  for (const auto& name : plannable_recipes(RecipeSize::quick)) {
    const std::string file = catalogue("recipes").source_files(name).front();
    if (!file.ends_with(".toml") || of_language_models != contains(text_of(file), "llm:smollm2")) continue;
    const auto recipe = written(find<RecipeEntry>(name), RecipeSize::quick);
    Alternating world;
    recipe->read(world);
    for (Judgement judgement : recipe->judgements()) {
      keep_some(judgement);
      if (judgement.by_code || has_world(name, judgement)) continue;  // tests/worlds
      INFO(name << ": " << judgement.statement.text);
      ++statements;
      REQUIRE(!judgement.numbers.empty());
      if (judgement.rule.kind == Rule::Kind::report) {
        world.numbers.clear();
        CHECK(ruling_in(judgement) == Ruling::measured);
        continue;
      }
      CHECK(not_on(judgement, world, Side::lies) == "");
      CHECK(to_string(ruling_in(judgement)) == "HOLDS");
      CHECK(not_on(judgement, world, Side::fails) == "");
      CHECK(to_string(ruling_in(judgement)) == (judgement.statement.setting.empty() ? "REFUTED" : "NOT SEEN"));
      const Take take = judgement.numbers.front().take.value_or(judgement.take);
      if (take == Take::exact || judgement.rule.kind == Rule::Kind::at_most) continue;  // no scatter
      CHECK(mixed(judgement, world));
    }
  }
  CHECK(statements > 0);
}

}  // namespace

TEST_CASE("every statement of a recipe file holds, fails and is left open where its numbers say so", "[recipes]") {
  check_statements(false);
}

TEST_CASE("so does every statement about a language model", "[recipes][models]") { check_statements(true); }

}  // namespace attnbench
