// Growth of time against length and crossovers, from times that are made up.
#include "harness/runner/growth.hpp"

#include <cmath>
#include <functional>

#include "harness/runner/recipe.hpp"
#include "harness/statistics/power_law.hpp"
#include "tests/catch.hpp"
#include "tests/runner/made_up.hpp"

namespace attnbench::growth_test {

namespace {

// A recipe of quick size that times one method at four lengths, with `seconds` of n as what it measures.
class Timed {
 public:
  explicit Timed(const std::function<double(double)>& seconds, double disturbed = 0, double between_sessions = 0)
      : measurements_([=](const Cell& cell, const std::string& metric) {
          const auto n = static_cast<double>(cell.problem.shape.nk);
          return [=](Index, size_t block) {
            if (metric == "disturbed") return disturbed;
            if (metric == "session") return 1e9 + between_sessions * n;
            return (1 + 0.001 * static_cast<double>(block)) * seconds(n);
          };
        }) {
    cells_ = recipe_.run({.experiment = "speed:blocks=48,turn=1",
                          .methods = {"linear"},
                          .inputs = {"gaussian"},
                          .n = {1024, 128, 512, 256}});
  }
  Finding grows(const GrowthLaw& law) {
    recipe_.judge(growth({"growth"}, law, {{"linear", cells_}}));
    return recipe_.verdicts(measurements_).back().finding;
  }
  double crossing() {
    recipe_.read(measurements_);
    std::vector<double> n, speedups;
    for (const Cells& one : by_length(cells_)) {
      n.push_back(static_cast<double>(length_of(one)));
      speedups.push_back(one.turns("speedup").at(0));
    }
    return last_rise_through_one(n, speedups);
  }

 private:
  Recipe recipe_{RecipeSize::quick};
  MadeUp measurements_;
  Cells cells_;
};

Timed power(double exponent) {
  return Timed([=](double n) { return 3e-9 * std::pow(n, exponent); });
}
bool has(const Finding& finding, const std::string& part) { return finding.numbers.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("one rule tells linear, n^1.5 and quadratic growth apart", "[unit]") {
  CHECK(power(1).grows(linear_growth).ruling == Ruling::holds);
  CHECK(power(1).grows(n_root_n_growth).ruling == Ruling::refuted);
  CHECK(power(1).grows(quadratic_growth).ruling == Ruling::refuted);
  CHECK(power(1.5).grows(linear_growth).ruling == Ruling::refuted);
  CHECK(power(1.5).grows(n_root_n_growth).ruling == Ruling::holds);
  CHECK(power(1.5).grows(quadratic_growth).ruling == Ruling::refuted);
  CHECK(power(2).grows(linear_growth).ruling == Ruling::refuted);
  CHECK(power(2).grows(quadratic_growth).ruling == Ruling::holds);
  CHECK(has(power(1.5).grows(n_root_n_growth), "linear, exponent: 1.5 ("));
}

// Within 0.2 of the law's own exponent, on the sides that the law has; n log n grows as n^1.12 here.
TEST_CASE("a law of growth has an allowance of 0.2", "[unit]") {
  CHECK(power(1.19).grows(linear_growth).ruling == Ruling::holds);
  CHECK(power(1.21).grows(linear_growth).ruling == Ruling::refuted);
  CHECK(power(0.5).grows(linear_growth).ruling == Ruling::holds);
  CHECK(power(1.31).grows(n_log_n_growth).ruling == Ruling::holds);
  CHECK(power(1.33).grows(n_log_n_growth).ruling == Ruling::refuted);
  CHECK(power(1.29).grows(n_root_n_growth).ruling == Ruling::refuted);
  CHECK(power(1.29).grows(n_root_n_growth_at_most).ruling == Ruling::holds);
  CHECK(power(1.71).grows(n_root_n_growth_at_most).ruling == Ruling::refuted);
  CHECK(power(1.79).grows(quadratic_growth).ruling == Ruling::refuted);
  CHECK(power(2.5).grows(quadratic_growth).ruling == Ruling::holds);
}

// n^2 up to 512 and flat from there on: (0, 2, 4, 4) over (0, 1, 2, 3) in powers of two have the slope 7 / 5, and the
// last three lengths alone 1.
TEST_CASE("the exponent is of all lengths of a curve", "[unit]") {
  const auto bent = [] { return Timed([](double n) { return std::min(n, 512.0) * std::min(n, 512.0); }); };
  CHECK(has(bent().grows(n_root_n_growth), "linear, exponent: 1.4 ("));
  CHECK(has(bent().grows(n_root_n_growth), "; FLOPs of linear n^"));
}

TEST_CASE("a curve whose turns were mostly disturbed says so", "[unit]") {
  Timed loud([](double n) { return n; }, 1);
  const Finding finding = loud.grows(linear_growth);
  CHECK(finding.ruling == Ruling::holds);  // both sides of a ratio were disturbed alike
  CHECK(has(finding, "most turns of 4 of 4 cells, worst 100 %"));
}

TEST_CASE("lengths of different sessions decide nothing", "[unit]") {
  Timed apart([](double n) { return n; }, 0, 1);
  const Finding finding = apart.grows(linear_growth);
  CHECK(finding.ruling == Ruling::open);
  CHECK(has(finding, "different sessions"));
}

TEST_CASE("a crossover is interpolated between lengths, for lengths in any order", "[unit]") {
  CHECK(std::abs(Timed([](double n) { return n / 300; }).crossing() - 300) < 1e-9);
  CHECK(Timed([](double n) { return n; }).crossing() == 0);
  CHECK(std::isinf(Timed([](double) { return 0.5; }).crossing()));
}

}  // namespace attnbench::growth_test
