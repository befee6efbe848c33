// Exponents of time against length, from times that were made up: what is judged, and what decides nothing.
#include "experiments/recipes/growth.hpp"

#include <unistd.h>

#include <filesystem>
#include <functional>

#include "tests/catch.hpp"

using namespace attnbench;
using Outcome = Verdict::Outcome;

namespace {

constexpr int blocks = 17;
const std::vector<Index> lengths{128, 256, 512, 1024};

// The growth of one method whose blocks take `seconds` of n, the block's factor on top.
Growth made_up(const std::function<double(double)>& seconds, double disturbed = 0) {
  const auto path = std::filesystem::temp_directory_path() / ("attnbench_growth_" + std::to_string(getpid()) + ".db");
  std::filesystem::remove(path);
  const RunRequest request{.experiment = "speed", .methods = {"linear"}, .inputs = {"gaussian"}, .n = lengths};
  Growth found;
  {
    Store store(path);
    const auto run = store.begin_run("test", "{}");
    for (const Cell& cell : expand(request)) {
      std::vector<double> times, marks(blocks, disturbed);
      for (int b = 0; b < blocks; ++b)
        times.push_back((1 + 0.001 * b) * seconds(static_cast<double>(cell.problem.shape.nk)));
      store.record(run, cell.row(true), 0, {}, 1,
                   {{"seconds", "s", {blocks}, times},
                    {"disturbed", "1", {blocks}, marks},
                    {"peak_bytes", "B", {}, {seconds(static_cast<double>(cell.problem.shape.nk))}}});
    }
    const Results results(store, std::vector<RunRequest>{request});
    found = growth(results, {{"method", "linear"}}, last_three(lengths), "seconds", share_of_error_rate(1));
    const Growth once = growth(results, {{"method", "linear"}}, last_three(lengths), "peak_bytes", 1e-9);
    CHECK(std::abs(once.exponent.value - found.exponent.value) < 1e-9);
    CHECK(once.exponent.interval.low == once.exponent.interval.high);
  }
  std::filesystem::remove(path);
  return found;
}

}  // namespace

TEST_CASE("the exponent of a power law is found, and judged from both sides", "[unit]") {
  const Growth found = made_up([](double n) { return 3e-9 * std::pow(n, 1.5); });
  CHECK(std::abs(found.exponent.value - 1.5) < 1e-9);
  CHECK(std::abs(found.bend) < 1e-9);
  CHECK(exponents_below(1.6, "s", {found}).outcome == Outcome::pass);
  CHECK(exponents_below(1.4, "s", {found}).outcome == Outcome::fail);
  CHECK(exponents_above(1.4, "s", {found}).outcome == Outcome::pass);
  CHECK(exponents_above(1.6, "s", {found}).outcome == Outcome::fail);
}

// a + n at 256, 512, 1024: with a = 512 the exponents of the two steps are 0.415 and 0.585.
TEST_CASE("what is no line in logarithms, or was disturbed, is not judged", "[unit]") {
  const Growth bent = made_up([](double n) { return 512 + n; });
  CHECK_FALSE(bent.is_power());
  CHECK(bent.bend < -0.05);
  CHECK(exponents_below(1, "s", {bent}).outcome == Outcome::ambiguous);
  CHECK(exponents_above(0.1, "s", {bent}).outcome == Outcome::ambiguous);
  const Growth loud = made_up([](double n) { return n; }, 1);
  CHECK(loud.is_power());
  CHECK(exponents_below(1.1, "s", {loud}).outcome == Outcome::ambiguous);
  CHECK(exponents_below(1.1, "s", {loud}).numbers.find("disturbed") != std::string::npos);
}
