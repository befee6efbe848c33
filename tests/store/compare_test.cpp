// Comparing results files, and methods within one: nothing differs from itself, a planted change is found, noise is not
// taken for one.
#include "harness/store/compare.hpp"

#include <SQLiteCpp/Database.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "harness/experiment/experiment.hpp"
#include "harness/random/streams.hpp"
#include "harness/statistics/two_samples.hpp"
#include "harness/store/compare_claims.hpp"
#include "harness/store/compare_methods.hpp"
#include "harness/store/store.hpp"
#include "tests/catch.hpp"
#include "tests/misuse.hpp"
#include "tests/store/results_file.hpp"

namespace attnbench::compare_test {
namespace fs = std::filesystem;

namespace {

using Outcome = ComparedMetric::Outcome;

ComparedFiles compare(const fs::path& a, const fs::path& b, const std::string& metric) {
  return attnbench::compare(a, b, metric, better_of);
}

ComparedMethods compare_methods(const fs::path& path, const char* a, const char* b, const std::string& metric) {
  return attnbench::compare_methods(path, a, b, metric, better_of);
}

fs::path record(const fs::path& path, const CellRow& row, const std::vector<double>& errors, Ending ending = {}) {
  Store store(path);
  const auto run = store.begin_run("a", "{}");
  for (size_t i = 0; i < errors.size(); ++i)
    store.record(run, row, static_cast<Index>(i), ending, 1, {scalar("output_error", errors[i])});
  return path;
}

CellRow with_seed(std::uint64_t seed) {
  CellRow row = cell("uniform");
  row.seed = seed;
  row.key += std::to_string(seed);
  return row;
}

ComparedMetric only_metric(const ComparedFiles& comparison) {
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
    CHECK(m.outcome == Outcome::same);
    CHECK(m.equal);
    CHECK(m.pairs == 2);
    CHECK(m.change == 0);
  }
  CHECK(compare(folder / "a.db", folder / "b.db", "absent").metrics.empty());
  CHECK(compare(folder / "a.db", folder / "b.db", "output_error").metrics.size() == 1);
}

TEST_CASE("of two versions of one cell the one that finished last counts, and of two at once the later row", "[unit]") {
  const Folder folder;
  const std::vector<double> ones{1, 1, 1}, twos{2, 2, 2};
  // Two versions of a cell in one file, the first with ones, the second with twos, which finished at those times.
  const auto counts = [&](const char* name, const std::string& first, const std::string& second) {
    CellRow of_twos = cell("uniform");
    of_twos.key = of_twos.source_version = "another";
    record(folder / name, cell("uniform"), ones);
    record(folder / name, of_twos, twos);
    SQLite::Database database(folder / name, SQLite::OPEN_READWRITE);
    for (const auto& [key, time] : {std::pair(cell("uniform").key, first), {of_twos.key, second}})
      database.exec(
          fmt::format("UPDATE replicate SET finished = '2026-01-0{}T00:00:00Z' WHERE cell = (SELECT id FROM "
                      "cell WHERE key = '{}')",
                      time, key));
    const ComparedMetric found = only_metric(compare(folder / name, folder / "ones.db", ""));
    CHECK(found.pairs == 3);
    return found.a;
  };
  record(folder / "ones.db", cell("uniform"), ones);
  CHECK(counts("rising.db", "1", "2") == 2);
  CHECK(counts("falling.db", "2", "1") == 1);
  CHECK(counts("equal.db", "1", "1") == 2);
}

TEST_CASE("replicates of one seed are compared as pairs, of different seeds as two samples", "[unit]") {
  const Folder folder;
  // A change of 0.1 +- 0.001 under a scatter of 1: only pairs show it.
  const std::vector<double> before{1, 2, 3, 4, 5, 6}, after{1.1, 2.101, 3.1, 4.099, 5.1, 6.1};
  record(folder / "a.db", with_seed(1), before);
  record(folder / "b.db", with_seed(1), after);
  record(folder / "c.db", with_seed(2), after);
  const auto paired = only_metric(compare(folder / "a.db", folder / "b.db", ""));
  CHECK(paired.outcome == Outcome::worse);
  CHECK(paired.pairs == 6);
  CHECK(paired.change == Approx(0.1));
  CHECK(paired.interval.low > 0.09);
  CHECK(paired.interval.high < 0.11);
  const auto apart = only_metric(compare(folder / "a.db", folder / "c.db", ""));
  CHECK(apart.outcome == Outcome::same);
  CHECK_FALSE(apart.equal);
  CHECK(apart.pairs == 0);
  CHECK(apart.interval.low < 0);
}

TEST_CASE("rounding is no difference, one number is ambiguous, an infinity is one", "[unit]") {
  const Folder folder;
  record(folder / "a.db", cell("uniform"), {1, 1, 1});
  record(folder / "rounded.db", cell("uniform"), {1 + 1e-15, 1 + 1e-15, 1 + 1e-15});
  record(folder / "larger.db", cell("uniform"), {1 + 1e-9, 1 + 1e-9, 1 + 1e-9});
  record(folder / "one.db", cell("uniform"), {2});
  record(folder / "infinite.db", cell("uniform"), {1, 1, INFINITY});
  record(folder / "twice.db", cell("uniform"), {1, INFINITY, INFINITY});
  record(folder / "elsewhere.db", cell("uniform"), {INFINITY, 1, 1});
  const auto outcome = [&](const char* a, const char* b) {
    return only_metric(compare(folder / a, folder / b, "")).outcome;
  };
  CHECK(outcome("a.db", "rounded.db") == Outcome::same);
  CHECK(outcome("a.db", "larger.db") == Outcome::worse);
  CHECK(outcome("larger.db", "a.db") == Outcome::better);
  CHECK(outcome("a.db", "one.db") == Outcome::ambiguous);
  CHECK(outcome("a.db", "infinite.db") == Outcome::differs);
  CHECK(outcome("infinite.db", "infinite.db") == Outcome::same);
  const ComparedMetric more = only_metric(compare(folder / "infinite.db", folder / "twice.db", ""));
  CHECK(more.outcome == Outcome::differs);
  CHECK(more.a == INFINITY);
  CHECK(more.b == INFINITY);
  CHECK(more.change == INFINITY);
  const ComparedMetric both = only_metric(compare(folder / "infinite.db", folder / "elsewhere.db", ""));
  CHECK(both.outcome == Outcome::ambiguous);
  CHECK(both.change == 0);
  CHECK(both.interval.low == -INFINITY);
  CHECK(both.interval.high == INFINITY);
}

TEST_CASE("cells that only one has and endings that differ are named", "[unit]") {
  const Folder folder;
  record(folder / "a.db", cell("uniform"), {1, 2});
  record(folder / "a.db", cell("zero"), {1});
  record(folder / "b.db", cell("uniform"), {0, 0}, {Ending::Kind::crashed, "signal 11"});
  record(folder / "b.db", cell("zero", 128), {1});
  const ComparedFiles comparison = compare(folder / "a.db", folder / "b.db", "");
  REQUIRE(comparison.endings.size() == 1);
  CHECK(contains(comparison.endings[0], "uniform gaussian n=64"));
  CHECK(contains(comparison.endings[0], "2 done in A, 2 crashed in B"));
  REQUIRE(comparison.only_a.size() == 1);
  REQUIRE(comparison.only_b.size() == 1);
  CHECK(contains(comparison.only_a[0], "zero gaussian n=64"));
  CHECK(contains(comparison.only_b[0], "zero gaussian n=128"));
  CHECK(comparison.metrics.empty());
}

TEST_CASE("timings of two files are compared beyond the noise between sessions, on any machine", "[unit]") {
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
                 {{"seconds", "s", {samples}, seconds}, {"speedup", "1", {samples}, seconds}, scalar("load", scale)});
  };
  const auto outcomes = [&] {  // of seconds, which are better when less, and of speedups
    const auto all = compare(folder / "a.db", folder / "b.db", "").metrics;
    REQUIRE(all.size() == 2);
    return std::pair(all[0].outcome, all[1].outcome);
  };
  timings("a.db", "here", 40, 1);
  timings("b.db", "there", 40, 2);
  CHECK(outcomes() == std::pair(Outcome::worse, Outcome::better));
  const auto slower = compare(folder / "a.db", folder / "b.db", "seconds").metrics.at(0);
  CHECK(slower.timing);
  CHECK(slower.change == Approx(2));
  CHECK(slower.interval.low > 1.9);
  CHECK(slower.interval.high < 2.1);
  timings("b.db", "there", 40, 1.18);  // noise of seconds, not of ratios to softmax
  CHECK(outcomes() == std::pair(Outcome::same, Outcome::better));
  timings("b.db", "there", 40, 1 / 1.18);
  CHECK(outcomes() == std::pair(Outcome::same, Outcome::worse));
  timings("b.db", "there", 40, 1.25);  // the interval straddles that
  CHECK(outcomes() == std::pair(Outcome::ambiguous, Outcome::better));
  timings("b.db", "there", 2, 2);
  CHECK(outcomes() == std::pair(Outcome::ambiguous, Outcome::ambiguous));
  CHECK(compare(folder / "b.db", folder / "b.db", "").metrics.at(0).equal);
}

TEST_CASE("what is better is known of errors, times, rates and retrieval, and of nothing else", "[unit]") {
  for (const auto& [metric, unit] : {std::pair{"relative_output_error", "1"}, {"peak_bytes", "B"}, {"seconds", "s"}})
    CHECK(better_of(metric, unit) == Better::less);
  for (const auto& [metric, unit] : {std::pair{"speedup", "1"}, {"tokens", "1/s"}, {"top_recall", "1"}})
    CHECK(better_of(metric, unit) == Better::more);
  for (const auto& [metric, unit] : {std::pair{"entropy", "nat"}, {"output_mse_theory", "1"}, {"stable_rank", "1"}})
    CHECK(better_of(metric, unit) == Better::unstated);
}

namespace {

// A file whose recipe "r" judges one statement.
void judge(const fs::path& path, Ruling outcome, Ruling expected, const std::string& text = "S") {
  fs::remove(path);
  Store store(path);
  store.begin_run("a", "{}");
  store.put_reproduction(
      {.recipe = "r",
       .size = "quick",
       .command = "attnbench reproduce r",
       .seconds = 1,
       .cells = {},
       .verdicts = {{{.text = text, .source = "source", .expected = expected}, {outcome, "numbers"}}}});
}

}  // namespace

TEST_CASE("a claim is better when its verdict becomes the expected one, and worse when it ceases to be", "[unit]") {
  using Claim = ComparedClaim::Outcome;
  using enum Ruling;
  const Folder folder;
  const auto outcome = [&](Ruling a, Ruling b, Ruling expected) {
    judge(folder / "a.db", a, expected);
    judge(folder / "b.db", b, expected);
    const auto comparison = compare_claims(folder / "a.db", folder / "b.db");
    REQUIRE(comparison.claims.size() == 1);
    return comparison.claims[0].outcome;
  };
  CHECK(outcome(holds, holds, holds) == Claim::same);
  CHECK(outcome(holds, refuted, holds) == Claim::worse);
  CHECK(outcome(refuted, holds, holds) == Claim::better);
  CHECK(outcome(holds, refuted, refuted) == Claim::better);  // a published statement that is false
  CHECK(outcome(holds, refuted, depends) == Claim::differs);
  CHECK(outcome(holds, refuted, open) == Claim::differs);  // nothing was expected
  CHECK(outcome(holds, open, holds) == Claim::ambiguous);
  CHECK(outcome(open, open, holds) == Claim::same);
}

TEST_CASE("claims that only one file judges are named", "[unit]") {
  using Claim = ComparedClaim::Outcome;
  using enum Ruling;
  const Folder folder;
  judge(folder / "a.db", holds, holds, "old");
  judge(folder / "b.db", holds, holds, "new");
  const auto apart = compare_claims(folder / "a.db", folder / "b.db");
  CHECK(apart.claims.empty());
  CHECK(apart.only_a == std::vector<std::string>{"r: old"});
  CHECK(apart.only_b == std::vector<std::string>{"r: new"});
  judge(folder / "b.db", refuted, holds, "old");
  const auto worse = compare_claims(folder / "a.db", folder / "b.db");
  REQUIRE(worse.claims.size() == 1);
  CHECK(worse.claims[0].outcome == Claim::worse);
  CHECK(worse.claims[0].size_a == "quick");
}

TEST_CASE("two methods of one file are compared problem by problem, in pairs of replicates", "[unit]") {
  const Folder folder;
  record(folder / "r.db", cell("linear"), {1, 2, 3, 4, 5, 6});
  record(folder / "r.db", cell("uniform"), {2, 3.001, 4, 4.999, 6, 7});  // 1 more, under a scatter of 2
  record(folder / "r.db", cell("linear", 128), {1, 2, 3, 4, 5, 6});
  record(folder / "r.db", cell("uniform", 128), {2, 1, 4, 3, 6, 5});
  record(folder / "r.db", cell("linear", 256), {1, 2});
  record(folder / "r.db", cell("uniform", 256), {1, 2});
  record(folder / "r.db", cell("linear", 512), {1, 2});
  const auto problems = compare_methods(folder / "r.db", "linear", "uniform", "").metrics;
  REQUIRE(problems.size() == 3);  // in the order of n: 64, 128, 256
  CHECK(contains(problems[1].cell, "gaussian n=128"));
  CHECK(problems[1].outcome == Outcome::ambiguous);
  CHECK(problems[2].outcome == Outcome::same);
  CHECK(problems[2].equal);
  CHECK(problems[0].outcome == Outcome::worse);
  CHECK(problems[0].change == Approx(1));
  CHECK(problems[0].pairs == 6);
  CHECK(compare_methods(folder / "r.db", "uniform", "linear", "").metrics.at(0).outcome == Outcome::better);
}

TEST_CASE("one count of bytes decides between methods, and one number of another kind does not", "[unit]") {
  const Folder folder;
  Store store(folder / "r.db");
  const auto run = store.begin_run("a", "{}");
  for (const auto& [method, value] : {std::pair{"linear", 57344.0}, {"uniform", 12288.0}})
    store.record(run, cell(method), 0, {}, 1, {{"peak_bytes", "B", {}, {value}}, scalar("output_error", value)});
  const auto compared = compare_methods(folder / "r.db", "linear", "uniform", "").metrics;
  REQUIRE(compared.size() == 2);
  CHECK(compared[0].metric == "output_error");
  CHECK(compared[0].outcome == Outcome::ambiguous);
  CHECK(compared[1].outcome == Outcome::better);
  CHECK(compare_methods(folder / "r.db", "uniform", "linear", "peak_bytes").metrics.at(0).outcome == Outcome::worse);
}

TEST_CASE("methods that took turns are compared within blocks, others and machines apart", "[unit]") {
  const Folder folder;
  // The machine slows down tenfold meanwhile: only ratios within a block tell 1.1 from 1.
  const auto timed = [&](const std::string& method, const std::string& machine, double scale, double session) {
    CellRow row = cell(method);
    row.threads = 1;
    row.machine = machine;
    row.key = key_on(row.key, machine);
    std::vector<double> seconds, speedups;
    for (Index i = 0; i < 20; ++i) {
      const double exact = session * static_cast<double>(1 + i % 10);
      seconds.push_back(scale * exact * (1 + 0.001 * static_cast<double>(i % 3)));
      speedups.push_back(exact / seconds.back());
    }
    Store store(folder / "r.db");
    store.record(store.begin_run("a", "{}"), row, 0, {}, 1,
                 {{"seconds", "s", {20}, seconds}, {"speedup", "1", {20}, speedups}, scalar("peak_bytes", scale)});
  };
  timed("linear", "here", 1, 1);
  timed("uniform", "here", 1.1, 1);
  timed("linear", "there", 1, 1);
  const auto only_here = compare_methods(folder / "r.db", "linear", "uniform", "seconds").metrics;
  REQUIRE(only_here.size() == 1);
  CHECK(contains(only_here[0].cell, "on here"));
  CHECK(only_here[0].outcome == Outcome::worse);
  CHECK(only_here[0].pairs == 20);
  CHECK(only_here[0].change == Approx(1.1).epsilon(0.01));
  timed("uniform", "there", 1.1, 1.01);  // another session
  const auto both = compare_methods(folder / "r.db", "linear", "uniform", "seconds").metrics;
  REQUIRE(both.size() == 2);
  CHECK(both[1].pairs == 0);
  CHECK(both[1].outcome == Outcome::ambiguous);
}

TEST_CASE("what two methods lack in a file is named, with the run that would make it", "[unit]") {
  const Folder folder;
  record(folder / "r.db", cell("linear"), {1, 2});
  record(folder / "r.db", cell("zero", 128), {1, 2});
  const auto refused = [&](const char* a, const char* b, const std::string& metric, const std::string& expected) {
    const std::string message = misuse_of([&] { compare_methods(folder / "r.db", a, b, metric); });
    INFO(message);
    CHECK(contains(message, expected));
  };
  refused("vq", "local", "", "neither vq nor local; its methods: linear, zero; this run would make them");
  refused("linear", "local", "", "has no local");
  refused("linear", "local", "",
          "attnbench run 'kernel-error:draws=8' --method 'linear' --method 'local' --input 'gaussian' -n 64 -d 16 "
          "--causal --results");
  refused("linear", "zero", "", "but of no problem both");
  record(folder / "r.db", cell("zero"), {1, 2});
  refused("linear", "zero", "seconds", "it has output_error");
  CHECK(contains(misuse_of([&] { compare_methods(folder / "absent.db", "linear", "zero", ""); }), "absent.db"));
  Store(folder / "empty.db");
  CHECK(contains(misuse_of([&] { compare_methods(folder / "empty.db", "linear", "zero", ""); }),
                 "its methods: none; this run would make them: attnbench run attention-error"));
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
      const Interval interval = difference_interval(moments(a), moments(b), 0.05);
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

// The critical values of Mann and Whitney's U for two samples of these sizes, two-sided at 5 %, as tables print them:
// so many of the ratios are left out at each end. No two of the ratios are equal.
TEST_CASE("the interval of a ratio ends at the order statistics of the Mann-Whitney table", "[unit]") {
  struct Entry {
    size_t n, m, critical;
  };
  for (const auto& [n, m, critical] : {Entry{4, 4, 0}, {5, 5, 2}, {5, 8, 6}, {8, 8, 13}, {7, 9, 12}, {10, 10, 23}}) {
    CAPTURE(n, m);
    std::vector<double> a, b, ratios;
    for (size_t i = 0; i < n; ++i) a.push_back(std::exp(0.1 * static_cast<double>(i)));
    for (size_t j = 0; j < m; ++j) b.push_back(std::exp(std::numbers::sqrt2 * static_cast<double>(j)));
    for (const double x : a)
      for (const double y : b) ratios.push_back(y / x);
    std::sort(ratios.begin(), ratios.end());
    const Interval interval = ratio_interval(a, b, 0.05);
    CHECK(interval.low == ratios[critical]);
    CHECK(interval.high == ratios[n * m - 1 - critical]);
  }
}

// Coverage is at least 95 %, and not much more: misses within 2.15 % below 5 %; a ratio of e is seen.
TEST_CASE("the interval of a ratio misses it as rarely as it says", "[statistics]") {
  const auto misses = [](double log_ratio, Index size) {
    int outside = 0;
    for (Index i = 0; i < 2000; ++i) {
      auto a = normal_sample("c", i, size), b = normal_sample("d", i, size + 5);
      for (double& x : a) x = std::exp(x);
      for (double& x : b) x = std::exp(x + log_ratio);
      const Interval interval = ratio_interval(a, b, 0.05);
      outside += interval.low > 1 || interval.high < 1;
    }
    return outside / 2000.0;
  };
  for (const Index size : {4, 20, 120}) {  // the last by the normal law
    CHECK(misses(0, size) < 0.05 + 0.0215);
    CHECK(misses(0, size) > 0.05 - 0.0215);
  }
  CHECK(misses(1, 20) > 0.8);
  CHECK(enough_for_ratio(4, 4, 0.05));  // 2 of 70 arrangements
  CHECK_FALSE(enough_for_ratio(3, 4, 0.05));
}

}  // namespace attnbench::compare_test
