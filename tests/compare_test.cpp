// Comparison of results files: nothing differs from itself, a planted change is found, noise is not taken for one.
#include "harness/store/compare.hpp"

#include <cmath>

#include "harness/random/streams.hpp"
#include "harness/statistics/two_samples.hpp"
#include "tests/catch.hpp"
#include "tests/misuse.hpp"
#include "tests/results_file.hpp"

using namespace attnbench;
namespace fs = std::filesystem;

namespace {

using Outcome = ComparedMetric::Outcome;

fs::path record(const fs::path& path, const CellRow& row, const std::vector<double>& errors, Ending ending = {}) {
  Store store(path);
  const auto run = store.begin_run("a", "{}");
  for (size_t i = 0; i < errors.size(); ++i)
    store.record(run, row, static_cast<Index>(i), ending, 1, {scalar("error", errors[i])});
  return path;
}

CellRow with_seed(std::uint64_t seed) {
  CellRow row = cell("uniform");
  row.seed = seed;
  row.key += std::to_string(seed);
  return row;
}

ComparedMetric only_metric(const Comparison& comparison) {
  REQUIRE(comparison.metrics.size() == 1);
  return comparison.metrics[0];
}

std::vector<double> normal_sample(const std::string& name, Index index, Index size) {
  auto generator = Streams(11).stream("compare", name + std::to_string(index));
  const auto values = standard_normal(generator, 1, size);
  return {values.data(), values.data() + size};
}

}  // namespace

TEST_CASE("a file does not differ from itself, nor from one of other source versions with the same numbers", "[unit]") {
  const Folder folder;
  CellRow newer = cell("uniform");
  newer.key = "other";
  newer.source_version = "other";
  record(folder / "a.db", cell("uniform"), {0.5, 0.25});
  record(folder / "b.db", newer, {0.5, 0.25});
  for (const char* other : {"a.db", "b.db"}) {
    const auto m = only_metric(compare(folder / "a.db", folder / other, ""));
    CHECK(m.outcome == Outcome::equal);
    CHECK(m.pairs == 2);
    CHECK(m.change == 0);
  }
  CHECK(compare(folder / "a.db", folder / "b.db", "absent").metrics.empty());
  CHECK(compare(folder / "a.db", folder / "b.db", "error").metrics.size() == 1);
}

TEST_CASE("replicates of one seed are compared as pairs, of different seeds as two samples", "[unit]") {
  const Folder folder;
  // A change of 0.1 +- 0.001 under a scatter of 1: only pairs show it.
  const std::vector<double> before{1, 2, 3, 4, 5, 6}, after{1.1, 2.101, 3.1, 4.099, 5.1, 6.1};
  record(folder / "a.db", with_seed(1), before);
  record(folder / "b.db", with_seed(1), after);
  record(folder / "c.db", with_seed(2), after);
  const auto paired = only_metric(compare(folder / "a.db", folder / "b.db", ""));
  CHECK(paired.outcome == Outcome::differs);
  CHECK(paired.pairs == 6);
  CHECK(paired.change == Approx(0.1));
  CHECK(paired.interval.low > 0.09);
  CHECK(paired.interval.high < 0.11);
  const auto apart = only_metric(compare(folder / "a.db", folder / "c.db", ""));
  CHECK(apart.outcome == Outcome::within_error);
  CHECK(apart.pairs == 0);
  CHECK(apart.interval.low < 0);
}

TEST_CASE("rounding is no difference, one number is undecided, an infinity is one", "[unit]") {
  const Folder folder;
  record(folder / "a.db", cell("uniform"), {1, 1, 1});
  record(folder / "rounded.db", cell("uniform"), {1 + 1e-15, 1 + 1e-15, 1 + 1e-15});
  record(folder / "larger.db", cell("uniform"), {1 + 1e-9, 1 + 1e-9, 1 + 1e-9});
  record(folder / "one.db", cell("uniform"), {2});
  record(folder / "infinite.db", cell("uniform"), {1, 1, INFINITY});
  const auto outcome = [&](const char* a, const char* b) {
    return only_metric(compare(folder / a, folder / b, "")).outcome;
  };
  CHECK(outcome("a.db", "rounded.db") == Outcome::within_error);
  CHECK(outcome("a.db", "larger.db") == Outcome::differs);
  CHECK(outcome("a.db", "one.db") == Outcome::undecided);
  CHECK(outcome("a.db", "infinite.db") == Outcome::differs);
  CHECK(outcome("infinite.db", "infinite.db") == Outcome::equal);
}

TEST_CASE("cells that only one has and endings that differ are named", "[unit]") {
  const Folder folder;
  record(folder / "a.db", cell("uniform"), {1, 2});
  record(folder / "a.db", cell("zero"), {1});
  record(folder / "b.db", cell("uniform"), {0, 0}, {Ending::Kind::crashed, "signal 11"});
  record(folder / "b.db", cell("zero", 128), {1});
  const Comparison comparison = compare(folder / "a.db", folder / "b.db", "");
  REQUIRE(comparison.endings.size() == 1);
  CHECK(contains(comparison.endings[0], "uniform gaussian n=64"));
  CHECK(contains(comparison.endings[0], "2 done in A, 2 crashed in B"));
  REQUIRE(comparison.only_a.size() == 1);
  REQUIRE(comparison.only_b.size() == 1);
  CHECK(contains(comparison.only_a[0], "zero gaussian n=64"));
  CHECK(contains(comparison.only_b[0], "zero gaussian n=128"));
  CHECK(comparison.metrics.empty());
}

TEST_CASE("timings are compared by the ratio of their medians, on any machine, and too few are undecided", "[unit]") {
  const Folder folder;
  const auto timings = [&](const char* name, const std::string& machine, Index samples, double scale) {
    CellRow row = cell("softmax");
    row.threads = 1;
    row.machine = machine;
    row.key = key_on(row.key, machine);
    std::vector<double> seconds;
    for (Index i = 0; i < samples; ++i) seconds.push_back(scale * (1 + 0.01 * static_cast<double>(i % 7)));
    fs::remove(folder / name);
    Store store(folder / name);
    store.record(store.begin_run("a", "{}"), row, 0, {}, 1,
                 {{"seconds", "s", {samples}, seconds}, scalar("fma_peak", scale)});
  };
  timings("a.db", "here", 40, 1);
  timings("b.db", "there", 40, 1.5);
  const auto slower = only_metric(compare(folder / "a.db", folder / "b.db", ""));
  CHECK(slower.outcome == Outcome::differs);
  CHECK(slower.timing);
  CHECK(slower.change == Approx(1.5));
  CHECK(slower.interval.low > 1.4);
  CHECK(slower.interval.high < 1.6);
  timings("b.db", "there", 40, 1.001);
  CHECK(only_metric(compare(folder / "a.db", folder / "b.db", "")).outcome == Outcome::within_error);
  timings("b.db", "there", 5, 1.5);
  CHECK(only_metric(compare(folder / "b.db", folder / "b.db", "")).outcome == Outcome::equal);
  CHECK(only_metric(compare(folder / "a.db", folder / "b.db", "")).outcome == Outcome::undecided);
}

// 2,000 pairs of samples with one mean, at a confidence of 95 %: the share of intervals that miss 0 is binomial, and
// lies outside of 5 % +- 4.42 standard errors (2.15 %) with probability 1e-5. The power: a shift of two standard
// deviations is to be seen in more than half (in nearly all), and t quantiles of n - 1 instead of Welch's would miss by
// 5 % more.
TEST_CASE("the intervals of two samples miss no difference as rarely as they say", "[statistics]") {
  const auto misses = [](double shift, double scale) {
    int outside = 0;
    for (Index i = 0; i < 2000; ++i) {
      auto a = normal_sample("a", i, 4), b = normal_sample("b", i, 12);
      for (double& x : b) x = scale * x + shift;
      const Interval interval = difference_interval(moments(a), moments(b), 0.95);
      outside += interval.low > 0 || interval.high < 0;
    }
    return outside / 2000.0;
  };
  for (const double scale : {1.0, 5.0}) {
    CHECK(misses(0, scale) > 0.05 - 0.0215);
    CHECK(misses(0, scale) < 0.05 + 0.0215);
  }
  CHECK(misses(2, 1) > 0.5);
}

// Ratio of medians: coverage is at least 95 %, so that misses stay below 5 % + 2.15 %; a ratio of e^2 is seen.
TEST_CASE("the interval of a ratio of medians misses it no more often than it says", "[statistics]") {
  const auto misses = [](double log_ratio) {
    int outside = 0;
    for (Index i = 0; i < 2000; ++i) {
      auto a = normal_sample("c", i, 20), b = normal_sample("d", i, 25);
      for (double& x : a) x = std::exp(x);
      for (double& x : b) x = std::exp(x + log_ratio);
      const Interval interval = median_ratio_interval(a, b, 0.95);
      outside += interval.low > 1 || interval.high < 1;
    }
    return outside / 2000.0;
  };
  CHECK(misses(0) < 0.05 + 0.0215);
  CHECK(misses(2) > 0.9);
  CHECK(enough_for_median(20, 0.95));
  CHECK(enough_for_median(6, 0.95));
  CHECK_FALSE(enough_for_median(5, 0.95));
}
