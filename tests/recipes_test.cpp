// Recipes and their verdicts: every recipe's runs, figures and conditions fit together, and verdicts say what their
// intervals say.
#include <unistd.h>

#include <algorithm>
#include <boost/random/normal_distribution.hpp>
#include <cmath>
#include <filesystem>
#include <set>

#include "harness/core/error.hpp"
#include "harness/random/streams.hpp"
#include "harness/runner/experiment.hpp"
#include "harness/runner/recipe.hpp"
#include "harness/runner/reproduce.hpp"
#include "tests/scores.hpp"

using namespace attnbench;
using Outcome = Verdict::Outcome;

namespace {

class TemporaryStore {
 public:
  TemporaryStore()
      : path_(std::filesystem::temp_directory_path() / ("attnbench_recipes_" + std::to_string(getpid()) + ".db")) {
    std::filesystem::remove(path_);
    store_ = std::make_unique<Store>(path_);
  }
  ~TemporaryStore() {
    store_.reset();
    std::filesystem::remove(path_);
  }
  Store& operator*() { return *store_; }
  Store* operator->() { return store_.get(); }

 private:
  std::filesystem::path path_;
  std::unique_ptr<Store> store_;
};

Estimate interval(double low, double high) { return {(low + high) / 2, {low, high}, 8}; }
Comparison compared(double low, double high) { return {"setting", interval(low, high)}; }
Region region(const std::string& name, double low, double high) { return {name, {compared(low, high)}}; }

bool near(double x, double y) { return std::abs(x - y) < 1e-6; }

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a mean and its interval are Student's", "[unit]") {
  // mean 3, standard deviation sqrt(2.5), t(4, 0.975) = 2.776445: half width 2.776445 sqrt(2.5 / 5)
  const Samples samples{{0, 1}, {1, 2}, {2, 3}, {5, 4}, {9, 5}};
  const Estimate found = mean(samples, 0.05);
  CHECK(near(found.value, 3));
  CHECK(near(found.interval.low, 3 - 1.963243));
  CHECK(near(found.interval.high, 3 + 1.963243));
  CHECK(found.replicates == 5);
  CHECK_FALSE(mean({{0, 1.0}}, 0.05).below(1e300));
  CHECK_FALSE(mean({{0, 1.0}}, 0.05).above(-1e300));
}

TEST_CASE("the interval of a median lies between order statistics, where there are enough", "[unit]") {
  // 2 P(Binomial(15, 1/2) <= 2) = 0.0074, of 3 it is 0.035: the third and the thirteenth of fifteen at 1 %.
  std::vector<double> samples;
  for (int i = 15; i > 0; --i) samples.push_back(i);
  samples[0] = std::numeric_limits<double>::infinity();  // 15: beyond what was measured
  const Estimate found = median_of(samples, 0.01);
  CHECK(found.value == 8);
  CHECK(found.interval.low == 3);
  CHECK(found.interval.high == 13);
  CHECK(median_of(samples, 1e-4).interval.high == std::numeric_limits<double>::infinity());
  CHECK(median_of(samples, 1e-4).above(0.5));        // 2^-14 = 6.1e-5: all of them lie above 0.5
  CHECK_FALSE(median_of(samples, 5e-5).above(0.5));  // no pair of fifteen is as sure as that
  CHECK_FALSE(median_of({}, 0.5).below(1));
}

TEST_CASE("a ratio is paired by replicate, on the logarithmic scale", "[unit]") {
  const Samples b{{0, 1}, {1, 10}, {2, 100}, {3, 7}, {4, -1}, {6, 2}};
  Samples a;
  for (const auto& [replicate, value] : b) a[replicate] = (replicate % 2 ? 2.0 : 0.5) * value;
  a[5] = 3;  // no partner
  a[6] = 0;  // not positive
  const Estimate found = ratio(a, b, 0.05);
  CHECK(found.replicates == 4);
  CHECK(near(found.value, 1));
  CHECK(near(found.interval.low * found.interval.high, 1));
  // logs +-ln 2, standard deviation ln 2 sqrt(4/3), t(3, 0.975) = 3.182446
  CHECK(near(std::log(found.interval.high), 3.182446 * std::log(2.0) * std::sqrt(4.0 / 3) / 2));
  CHECK(ratio({}, {}, 0.05).replicates == 0);
}

TEST_CASE("all below: pass, fail, or how many more replicates would decide", "[unit]") {
  CHECK(all_below(1, "s", {compared(0.2, 0.4), compared(0.5, 0.9)}).outcome == Outcome::pass);
  CHECK(all_below(1, "s", {compared(0.2, 0.4), compared(1.1, 1.3)}).outcome == Outcome::fail);
  CHECK(all_below(1, "s", {compared(0.2, 1.2), compared(1.1, 1.3)}).outcome == Outcome::fail);
  const Verdict open = all_below(1, "s", {compared(0.2, 0.4), compared(0.25, 1.25)});
  CHECK(open.outcome == Outcome::ambiguous);
  CHECK(has(open.numbers, "about 24 more replicates"));  // half width 0.5, distance 0.25: 8 (2^2 - 1)
  CHECK(has(all_below(1, "s", {compared(0.5, 1.5)}).numbers, "any number of replicates"));
  CHECK(all_below(1, "s", {}).outcome == Outcome::ambiguous);
}

TEST_CASE("all contain: a wide interval proves nothing", "[unit]") {
  CHECK(all_contain(1, 0.25, "s", {compared(0.9, 1.2), compared(0.95, 1.05)}).outcome == Outcome::pass);
  CHECK(all_contain(1, 0.25, "s", {compared(0.9, 1.2), compared(1.01, 1.05)}).outcome == Outcome::fail);
  CHECK(all_contain(1, 0.25, "s", {compared(0.1, 3)}).outcome == Outcome::ambiguous);
  CHECK(all_contain(1, 0.25, "s", {{"one replicate", mean({{0, 1.0}}, 0.01)}}).outcome == Outcome::ambiguous);
  CHECK(all_contain(1, 0.25, "s", {}).outcome == Outcome::ambiguous);
}

TEST_CASE("a bound on matrices that are there: one beyond it fails, however many are not", "[unit]") {
  const Verdict holds = all_at_most("s", {{"a", 3, 64}, {"b", 64, 64}});
  CHECK(holds.outcome == Outcome::pass);
  CHECK(has(holds.numbers, "b: 64 and at most 64, of 2 compared"));
  CHECK(all_at_most("s", {{"a", 3, 64}, {"b", 65, 64}, {"c", 64, 64}}).outcome == Outcome::fail);
  CHECK(all_at_most("s", {}).outcome == Outcome::ambiguous);
  CHECK(certain(2).text() == "2");
  CHECK(certain(2).below(2.5));
  CHECK_FALSE(certain(2).below(2));
}

TEST_CASE("below where: the regions are named", "[unit]") {
  CHECK(below_where(1, "s", {region("a", 0.1, 0.2), region("b", 0.3, 0.4)}).outcome == Outcome::pass);
  CHECK(below_where(1, "s", {region("a", 0.1, 0.2), region("b", 0.3, 0.4)}).statement.text == "s");
  const Verdict mixed = below_where(1, "s", {region("a", 0.1, 0.2), region("b", 2, 3), region("c", 0.5, 2)});
  CHECK(mixed.outcome == Outcome::conditional);
  CHECK(mixed.statement.text == "s");
  CHECK(mixed.region == "holds at a; fails at b; undecided at c");
  CHECK(below_where(1, "s", {region("a", 2, 3)}).outcome == Outcome::fail);
  CHECK(below_where(1, "s", {region("a", 2, 3), region("b", 0.5, 2)}).outcome == Outcome::ambiguous);
  const Verdict part = below_where(1, "s", {{"a", {compared(0.1, 0.2), compared(2, 3)}}});
  CHECK(part.outcome == Outcome::conditional);
  CHECK(has(part.region, "holds in part at a"));
  const Verdict open = below_where(1, "s", {region("a", 0.1, 0.2), region("b", 0.75, 1.75)});
  CHECK(open.outcome == Outcome::ambiguous);
  CHECK(has(open.numbers, "about 24 more replicates"));  // half width 0.5, distance 0.25: 8 (2^2 - 1)
  CHECK(below_where(1, "s", {}).outcome == Outcome::ambiguous);
  CHECK(below_where(1, "s", {{"a", {}}}).outcome == Outcome::ambiguous);
}

TEST_CASE("a verdict that flips with the seed is ambiguous", "[unit]") {
  const Verdict pass{Outcome::pass, "s", "1"}, fail{Outcome::fail, "s", "2"};
  CHECK(agreed({{pass}})[0].numbers == "1");
  CHECK(agreed({{pass, fail}, {pass, fail}})[1].outcome == Outcome::fail);
  const Verdict flipped = agreed({{pass}, {fail}, {pass}})[0];
  CHECK(flipped.outcome == Outcome::ambiguous);
  CHECK(flipped.numbers == "PASS with seeds 1, 3, FAIL with seed 2; with the first: 1");
}

TEST_CASE("a verdict contradicts what was expected only when both are decided", "[unit]") {
  CHECK(contradicts_expectation({Outcome::fail, "s", ""}));
  CHECK_FALSE(contradicts_expectation({Outcome::ambiguous, "s", ""}));
  CHECK_FALSE(contradicts_expectation({Outcome::fail, {"s", Outcome::fail}, ""}));
  CHECK(contradicts_expectation({Outcome::pass, {"s", Outcome::fail}, ""}));
  CHECK(contradicts_expectation({Outcome::pass, {"s", Outcome::conditional}, ""}));
  CHECK_FALSE(contradicts_expectation({Outcome::pass, {"s", Outcome::ambiguous}, ""}));
}

// A verdict errs with probability 2.5e-4 at most: of 2000 verdicts on nulls at most 5 do, the 1 - 1e-4 / 3 quantile of
// Binomial(2000, 2.5e-4), for three seeds. Power: a deviation of 3.5 standard deviations is found by 12 replicates
// with probability 0.9995 (noncentral t), so that fewer than 1988 of 2000 are found with probability 3e-11.
TEST_CASE("verdicts err as often as they say", "[statistics]") {
  constexpr size_t comparisons = 5;
  constexpr int verdicts = 2000, replicates = 12;
  for (const auto seed : base_seeds) {
    Generator generator = Streams(seed).stream("verdict test");
    boost::random::normal_distribution<double> normal;
    const auto failures = [&](double shift) {
      int count = 0;
      for (int v = 0; v < verdicts; ++v) {
        std::vector<Comparison> all;
        for (size_t c = 0; c < comparisons; ++c) {
          Samples samples;
          for (Index r = 0; r < replicates; ++r) samples[r] = (c == 0 ? shift : 0) + normal(generator);
          all.push_back({"", mean(samples, share_of_error_rate(comparisons))});
        }
        count += all_contain(0, 1e9, "", all).outcome == Outcome::fail;
      }
      return count;
    };
    CHECK(failures(0) <= 5);
    CHECK(failures(3.5) >= 1988);
  }
}

TEST_CASE("results are those of the recipe's own cells", "[unit]") {
  TemporaryStore store;
  const auto id = store->begin_run("test", "{}");
  RunRequest request{.experiment = "kernel-error:draws=64,pairs=1",
                     .methods = {"performer:projection=iid,m=4", "performer:m=4"},
                     .inputs = {"pair"},
                     .n = {1},
                     .d = {4},
                     .sweep = {{"length", {"0.1", "0.2"}}},
                     .replicates = 3};
  RunRequest other = request;  // of another run: not the recipe's
  other.experiment = "kernel-error:draws=128,pairs=1";
  run(request, *store, id);
  run(other, *store, id);
  const Results results(*store, {request});
  const nlohmann::json one{{"method", "performer:m=4,projection=iid"}, {"input", "pair:length=0.1"}};
  const Samples bias = results.scalar(one, "relative_bias");
  CHECK(bias.size() == 3);
  CHECK(results.scalar({{"method", "performer:projection=iid,m=4"}, {"length", 0.1}, {"d", 4}}, "relative_bias") ==
        bias);
  CHECK(results.scalar(one, "no such metric").empty());
  CHECK(Results(*store, {request, other})
            .scalar({{"experiment", "kernel-error:draws=64,pairs=1"},
                     {"method", "performer:m=4,projection=iid"},
                     {"input", "pair:length=0.1"}},
                    "relative_bias") == bias);
  CHECK(results.array(one, "no such metric").empty());
  CHECK(results.array(one, "relative_bias").empty());  // a scalar
  CHECK(results.array(one, "pair_bias").size() == 3);  // one pair, three replicates
  for (const Cell& cell : expand(request))             // a replicate without it: the others are no sample of all
    if (cell.row(false).input == "pair:length=0.1") store->record(id, cell.row(false), 3, {}, 1, {});
  CHECK(results.scalar(one, "relative_bias").empty());
  CHECK(results.array(one, "pair_bias").empty());
  CHECK_THROWS_AS(results.scalar({{"method", "performer:m=4"}}, "relative_bias"), std::logic_error);  // two lengths
  CHECK_THROWS_AS(results.scalar({{"method", "performer:m=8"}}, "relative_bias"), std::logic_error);
  CHECK_THROWS_AS(results.scalar({{"experiment", "rank"}, {"length", 0.1}}, "relative_bias"), std::logic_error);
}

TEST_CASE("specs in a panel may be spelled in any way", "[unit]") {
  const Figure drawn = figure("f", {}, "title", "caption",
                              {{.title = "panel",
                                .where = {{"experiment", "kernel-error:pairs=4,draws=16384"},
                                          {"input", nlohmann::json::array({"pair:angle=0", "gaussian"})},
                                          {"method", "performer:projection=iid,m=4"},
                                          {"d", 4}},
                                .y = "relative_mse",
                                .ratio_to = "performer:projection=orthogonal,m=8"}});
  const auto panel = nlohmann::json::parse(drawn.json)["panels"][0];
  CHECK(panel["where"] == nlohmann::json{{"experiment", "kernel-error:pairs=4"},
                                         {"input", {"pair", "gaussian"}},
                                         {"method", "performer:m=4,projection=iid"},
                                         {"d", 4}});
  CHECK(panel["ratio_to"] == "performer:m=8");
  CHECK_THROWS_AS(
      figure("f", {}, "t", "c", {{.title = "panel", .where = {{"method", "perfomer"}}, .y = "relative_mse"}}), Misuse);
}

TEST_CASE("every recipe's cells exist and its figures name what it runs, at every size", "[recipes]") {
  for (const auto& name : catalogue("recipes").names())
    for (const RecipeSize size : {RecipeSize::smoke, RecipeSize::quick, RecipeSize::full}) {
      const auto& recipe = find<RecipeEntry>(name);
      INFO(name);
      std::vector<std::string> experiments, methods;
      for (const auto& request : recipe.runs(size)) {
        RunRequest few = request;  // the names and axes, without the product of all values
        for (auto& axis : few.sweep) axis.values.resize(1);
        few.n.resize(std::min<size_t>(few.n.size(), 1));
        CHECK_FALSE(expand(few).empty());
        for (const auto& cell : expand(few)) {
          experiments.push_back(cell.experiment.name());
          methods.push_back(cell.method.name());
        }
      }
      CHECK_FALSE(recipe.figures(size).empty());
      for (const auto& figure : recipe.figures(size)) {
        const auto description = nlohmann::json::parse(figure.json);
        for (const auto& panel : description["panels"]) {
          const auto& wanted = panel["where"]["experiment"];
          const auto all = wanted.is_array() ? wanted : nlohmann::json::array({wanted});
          std::vector<std::string> metrics{""};  // of any of them: a field may be empty
          for (const auto& one : all) {
            const std::string experiment = parse_spec(one.get<std::string>()).name;
            CHECK(std::find(experiments.begin(), experiments.end(), experiment) != experiments.end());
            for (const Metric& known : find<ExperimentEntry>(experiment).metrics) metrics.push_back(known.name);
          }
          for (const std::string field : {"y", "theory", "x_metric", "area", "bound_x"}) {
            const auto metric = panel[field].get<std::string>();
            INFO(metric);
            CHECK(std::find(metrics.begin(), metrics.end(), metric) != metrics.end());
          }
        }
      }
    }
}

// The smallest size of every recipe that judges: all of it fits together, and nothing is decided otherwise than
// expected. Two blocks of turns are too few for an interval, so that timings decide nothing here. The error rate of a
// verdict is that of so many, so that there may be no more.
TEST_CASE("recipes that judge come to a verdict", "[statistics]") {
  TemporaryStore store;
  const auto id = store->begin_run("test", "{}");
  size_t count = 0;
  for (const auto& name : catalogue("recipes").names()) {
    const auto& recipe = find<RecipeEntry>(name);
    if (!recipe.judge) continue;
    INFO(name);
    RunSummary total;
    const auto done = reproduce(recipe, RecipeSize::smoke, {}, *store, id, total);
    REQUIRE(done);
    CHECK(total.not_done == 0);
    CHECK_FALSE(done->verdicts.empty());
    count += done->verdicts.size();
    std::set<std::string> statements;
    for (const auto& verdict : done->verdicts) {
      INFO(verdict.statement.text << " [" << verdict.numbers << "] " << verdict.region);
      CHECK_FALSE(contradicts_expectation(verdict));
      if (verdict.outcome == Outcome::conditional) CHECK_FALSE(verdict.region.empty());
      CHECK(statements.insert(verdict.statement.text).second);
      CHECK_FALSE(verdict.statement.source.empty());
      CHECK_FALSE(verdict.numbers.empty());
      for (const std::string& seen : {verdict.statement.text, verdict.statement.source})
        CHECK_FALSE(has(seen, ".md"));  // documents that readers do not have
    }
  }
  CHECK(count <= most_verdicts);
}
