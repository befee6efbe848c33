// Replicates until a precision: where a cell stops, and what its interval then covers.
#include "harness/runner/precision.hpp"

#include <cmath>
#include <limits>

#include "harness/random/streams.hpp"
#include "harness/statistics/intervals.hpp"
#include "tests/misuse.hpp"

namespace attnbench::precision_test {
using State = Stopping::State;

namespace {

// Replicates 0, 1, ... with one value each.
std::map<Index, EndedReplicate> replicates(const std::vector<double>& values, double seconds = 0) {
  std::map<Index, EndedReplicate> all;
  for (const double value : values) all[std::ssize(all)] = {{value}, seconds};
  return all;
}

// Values around 1 whose Student half-width for `count` of them is known: one half at 1 + s, one at 1 - s.
std::vector<double> alternating(Index count, double s) {
  std::vector<double> values;
  for (Index i = 0; i < count; ++i) values.push_back(i % 2 == 0 ? 1 + s : 1 - s);
  return values;
}

}  // namespace

TEST_CASE("a precision is rel-ci above 0, and seconds above 0 for timing", "[unit]") {
  CHECK(parse_until("rel-ci=0.05").relative == 0.05);
  CHECK_FALSE(parse_until("rel-ci=0.05").seconds);
  CHECK(parse_until("rel-ci=1e-2,seconds=120").seconds == 120);
  CHECK(parse_until("seconds=120,rel-ci=1e-2").relative == 0.01);
  for (const char* text :
       {"", "0.05", "rel-ci", "rel-ci=", "rel-ci=0", "rel-ci=-0.1", "rel-ci=nan", "rel-ci=inf", "rel-ci=0.05x",
        "rel-ci=0.05,", "rel-ci=0.05,rel-ci=0.1", "seconds=5", "rel-ci=0.05,seconds=0", "rel-ci=0.05,seconds=-1",
        "rel-ci=0.05,minutes=1", "abs-ci=0.05", ",rel-ci=0.05"}) {
    CAPTURE(text);
    CHECK(contains(misuse_of([&] { parse_until(text); }), "expected rel-ci=X or rel-ci=X,seconds=S"));
  }
}

TEST_CASE("replicates are asked for in stages that double from five up to the cap", "[unit]") {
  const Until until{.relative = 1e-9};
  std::vector<Index> stages;
  std::map<Index, EndedReplicate> ended;
  for (Stopping now = stopping_of(ended, until, 50, false); now.state == State::open;
       now = stopping_of(ended, until, 50, false)) {
    stages.push_back(now.replicates);
    ended = replicates(alternating(now.replicates, 0.5));
  }
  CHECK(stages == std::vector<Index>{5, 10, 20, 40, 50});
  const Stopping last = stopping_of(ended, until, 50, false);
  CHECK(last.state == State::ambiguous);
  CHECK(last.replicates == 50);
  CHECK(stopping_of({}, until, 3, false).replicates == 3);  // a cap below the first stage
}

TEST_CASE("a cell stops where half of the mean's interval is short enough", "[unit]") {
  const auto ended = replicates(alternating(20, 0.5));
  const auto half = [&](Index count) {
    Moments sample;
    for (Index i = 0; i < count; ++i) sample.add(ended.at(i).values[0]);
    return (mean_interval(sample, 0.05).high - sample.mean) / sample.mean;
  };
  const double relative = half(10);
  CHECK(stopping_of(ended, {.relative = 1.001 * relative}, 20, false).replicates == 10);
  CHECK(stopping_of(ended, {.relative = 1.001 * relative}, 20, false).state == State::precise);
  CHECK(stopping_of(ended, {.relative = 1.001 * relative}, 20, false).relative == Approx(relative));
  CHECK(stopping_of(ended, {.relative = 0.999 * relative}, 20, false).replicates == 20);
}

TEST_CASE("what lies beyond the stage that decides does not change the decision", "[unit]") {
  const Until until{.relative = 0.05};
  auto ended = replicates({1, 1.01, 0.99, 1.02, 0.98});
  const Stopping five = stopping_of(ended, until, 1000, false);
  CHECK(five.state == State::precise);
  for (Index more = 5; more < 40; ++more) ended[more] = {{100.0 * static_cast<double>(more)}, 0};
  const Stopping beyond = stopping_of(ended, until, 1000, false);
  CHECK((beyond.state == five.state && beyond.replicates == five.replicates && beyond.relative == five.relative));
}

TEST_CASE("replicates that lie beyond a gap wait until it is closed", "[unit]") {
  auto ended = replicates({1, 1, 1, 1, 1});
  ended.erase(2);
  const Stopping gap = stopping_of(ended, {}, 1000, false);
  CHECK((gap.state == State::open && gap.replicates == 5));
}

TEST_CASE("equal values are precise, a zero that never varies included", "[unit]") {
  CHECK(stopping_of(replicates({2, 2, 2, 2, 2}), {}, 1000, false).state == State::precise);
  CHECK(stopping_of(replicates({0, 0, 0, 0, 0}), {}, 1000, false).state == State::precise);
}

TEST_CASE("a value that is infinite and a metric that is missing end at once, one number alone never suffices",
          "[unit]") {
  auto ended = replicates({1, 1, std::numeric_limits<double>::infinity(), 1, 1});
  CHECK(stopping_of(ended, {}, 1000, false).state == State::ambiguous);
  CHECK(stopping_of(ended, {}, 1000, false).replicates == 5);
  for (auto& [replicate, one] : ended) one.values.clear();
  CHECK(stopping_of(ended, {}, 1000, false).state == State::unmeasured);
  ended[0].values = {1};
  CHECK(stopping_of(ended, {}, 1000, false).state == State::open);
  CHECK(stopping_of(replicates({1}), {}, 1, false).state == State::ambiguous);
}

TEST_CASE("timing stops by the median of all samples, or when its turns took the seconds", "[unit]") {
  std::map<Index, EndedReplicate> ended;
  for (Index r = 0; r < 5; ++r) ended[r] = {{1.0, 1.01, 0.99, 1.02}, 9};
  CHECK(stopping_of(ended, {.relative = 0.05}, 1000, true).state == State::precise);
  ended[0].values[0] = 100;  // one disturbed turn of twenty moves a mean, not the median
  CHECK(stopping_of(ended, {.relative = 0.05}, 1000, true).state == State::precise);
  CHECK(stopping_of(ended, {.relative = 1e-3}, 1000, true).state == State::open);
  CHECK(stopping_of(ended, {.relative = 1e-3, .seconds = 45}, 1000, true).state == State::ambiguous);
  CHECK(stopping_of(ended, {.relative = 1e-3, .seconds = 46}, 1000, true).state == State::open);
  for (auto& [replicate, one] : ended) one = {{1.0}, 9};
  CHECK(stopping_of(ended, {.relative = 0.05}, 1000, true).state == State::open);  // five samples have no interval
}

namespace {

// One sequence of replicates of a normal law of mean 1: does the interval where `stops` ends it hold the mean?
template <class Stops>
bool covers(Generator& generator, double deviation, Stops&& stops) {
  std::vector<double> values;
  for (;;) {
    const Index wanted = stops(values);
    if (wanted <= std::ssize(values)) {
      const Moments sample = moments(std::span(values).first(static_cast<size_t>(wanted)));
      const Interval interval = mean_interval(sample, 0.05);
      return interval.low <= 1 && 1 <= interval.high;
    }
    const auto more = standard_normal(generator, 1, wanted - std::ssize(values));
    for (Index i = 0; i < more.size(); ++i) values.push_back(1 + deviation * more.data()[i]);
  }
}

template <class Stops>
double coverage(const char* name, double deviation, int sequences, Stops&& stops) {
  Generator generator = Streams(1).stream("precision", name);
  int covered = 0;
  for (int i = 0; i < sequences; ++i) covered += covers(generator, deviation, stops);
  return static_cast<double>(covered) / sequences;
}

// precision.hpp promises at least 90 %. With 4,000 sequences a rule that covers 91.5 %, the least that was found
// over deviations 0.1 to 1 and rel-ci 0.02 to 0.2, goes below with probability 4e-4, and one that covers 87 % stays
// above with probability 1e-8.
constexpr double promised = 0.90;
constexpr int sequences = 4000;

}  // namespace

TEST_CASE("an interval that was waited for covers at least 90 %", "[statistics]") {
  const auto rule = [](double relative) {
    return [relative](const std::vector<double>& values) {
      return stopping_of(replicates(values), {.relative = relative}, 1000, false).replicates;
    };
  };
  CHECK(coverage("wide", 0.5, sequences, rule(0.2)) >= promised);
  CHECK(coverage("middle", 0.1, sequences, rule(0.05)) >= promised);
  CHECK(coverage("narrow", 0.2, sequences, rule(0.05)) >= promised);
}

TEST_CASE("a rule that looks after every replicate from the second on covers less", "[statistics]") {
  const auto peeking = [](const std::vector<double>& values) -> Index {
    if (values.size() < 2) return 2;
    const Moments sample = moments(values);
    const Interval interval = mean_interval(sample, 0.05);
    const bool stop = (interval.high - interval.low) / 2 <= 0.05 * std::abs(sample.mean);
    return std::ssize(values) + (stop ? 0 : 1);
  };
  CHECK(coverage("peeking", 0.1, sequences, peeking) < promised);
}

}  // namespace attnbench::precision_test
