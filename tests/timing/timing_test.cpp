// Turns, rooflines and peak memory. Nothing here asserts how long something takes: only what follows from times.
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <algorithm>
#include <boost/random/normal_distribution.hpp>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <semaphore>
#include <string>
#include <thread>

#include "harness/linalg/bfloat16_products.hpp"
#include "harness/machine/counters.hpp"
#include "harness/machine/load.hpp"
#include "harness/machine/peak_memory.hpp"
#include "harness/random/streams.hpp"
#include "harness/runner/plan.hpp"
#include "harness/statistics/power_law.hpp"
#include "harness/timing/roofline.hpp"
#include "harness/timing/turns.hpp"
#include "tests/catch.hpp"

namespace attnbench::timing_test {

namespace {

constexpr double mebibyte = 1 << 20;

class Counted final : public TimedCall {
 public:
  void call() override { ++calls_; }
  void record(Recorder& recorder) const override { recorder.scalar("calls", "1", static_cast<double>(calls_)); }

 private:
  Index calls_ = 0;
};

// One cell of `speed`, and what its worker keeps of it.
struct OneCell {
  Cell cell = expand({.experiment = "speed:blocks=5,turn=0.01",
                      .methods = {"linear"},
                      .inputs = {"gaussian"},
                      .n = {8},
                      .d = {4},
                      .precision = Precision::f32})
                  .front();
  Context context = Context();
  ExactCache exact = {};
  Task task{cell, 0, context, exact};
};

// beside: of each of its turns, whether others disturbed it.
std::map<std::string, std::vector<double>> recorded(TimedMember& member, const std::vector<double>& exact,
                                                    const std::vector<double>& beside) {
  Recorder recorder;
  member.record({.exact = exact,
                 .load = std::vector<double>(beside.size(), 0.125),
                 .beside = beside,
                 .session = 17,
                 .rates = {.fma_peak = 7}},
                recorder);
  std::map<std::string, std::vector<double>> metrics;
  for (const auto& m : recorder.take()) metrics[m.metric] = m.values;
  for (const auto& note : recorder.notes()) metrics["note: " + note] = {};
  return metrics;
}

// Says itself how long its turns took.
class Told final : public TimedCall {
 public:
  explicit Told(std::vector<double> seconds) : seconds_(std::move(seconds)) {}
  void call() override {}
  void before_turn(Index) override { ++turn_; }
  std::optional<double> seconds_elsewhere(Index) override { return seconds_.at(std::max<size_t>(turn_, 1) - 1); }

 private:
  std::vector<double> seconds_;
  size_t turn_ = 0;
};

// Of each block of a cell that was told how long its turns took, whether it is recorded as disturbed.
std::vector<double> marked(const std::vector<double>& seconds, const std::vector<double>& beside) {
  OneCell one;
  const Timing timing{.make = [&](const Task&) { return std::make_unique<Told>(seconds); }};
  TimedMember member(timing, one.task);
  for (size_t block = 0; block < seconds.size(); ++block) member.turn(TimedMember::Whose::own);
  return recorded(member, {}, beside)["disturbed"];
}

// Turns of 24 blocks: about a millisecond with a scatter of 3 %, and from block `first` to `last` a fifth slower.
std::vector<double> turns(std::uint64_t seed, size_t first, size_t last) {
  Generator generator = Streams(seed).stream("turns");
  boost::random::normal_distribution<double> noise(0, 0.03);
  std::vector<double> seconds;
  for (size_t block = 0; block < 24; ++block)
    seconds.push_back(1e-3 * std::exp(noise(generator)) * (block >= first && block < last ? 1.2 : 1));
  return seconds;
}

double share(const std::vector<double>& marks, size_t first, size_t last) {
  double sum = 0;
  for (size_t block = first; block < last; ++block) sum += marks.at(block);
  return sum / static_cast<double>(last - first);
}

std::unique_ptr<TimedCall> counted(const Task&) { return std::make_unique<Counted>(); }

}  // namespace

TEST_CASE("a member keeps its turns, and its pairs where softmax had as many", "[unit]") {
  OneCell one;
  const Timing timing{.make = counted, .record = [](const Task&, const Member& member, Recorder& recorder) {
                        recorder.scalar("peak", "1", member.rates.fma_peak);
                        std::vector<double> rates;
                        for (const Rates& now : member.arithmetic) rates.push_back(now.fma_peak);
                        recorder.array("rates", "1", {std::ssize(rates)}, rates);
                      }};
  TimedMember member(timing, one.task);
  CHECK_FALSE(member.has_peer());
  std::vector<double> seconds;
  for (int block = 0; block < 5; ++block) seconds.push_back(member.turn(TimedMember::Whose::own));
  auto metrics = recorded(member, {1, 2, 3, 4, 5}, {0, 1, 0, 0, 1});
  CHECK(metrics["seconds"] == seconds);
  for (size_t block = 0; block < 5; ++block)
    CHECK(metrics["speedup"][block] == static_cast<double>(block + 1) / seconds[block]);
  CHECK(metrics["disturbed"].size() == 5);
  for (const double mark : metrics["disturbed"]) CHECK((mark == 0 || mark == 1));
  CHECK((metrics["disturbed"][1] == 1 && metrics["disturbed"][4] == 1));
  CHECK(metrics["load"] == std::vector<double>(5, 0.125));
  CHECK(metrics["session"] == std::vector<double>{17});
  CHECK(metrics["peak"] == std::vector<double>{7});
  CHECK(metrics["rates"].size() == 5);  // measured after each turn, for the roofline of its moment
  CHECK(std::ranges::all_of(metrics["rates"], [](double rate) { return rate > 0; }));
  // One call finds the length of a turn, and where the peak of the memory can be had one finds that.
  const double untimed = metrics.contains("peak_bytes") ? 2 : 1;
  CHECK(metrics["calls"][0] >= 5 * metrics["iterations"][0] + untimed);
  CHECK_FALSE(metrics.contains("peer_seconds"));

  TimedMember alone(timing, one.task);
  alone.turn(TimedMember::Whose::own);
  CHECK_FALSE(recorded(alone, {}, {0}).contains("speedup"));
}

TEST_CASE("a turn of short calls begins with one that is not timed", "[unit]") {
  class Said final : public TimedCall {
   public:
    Said(double seconds, int& warm) : seconds_(seconds), warm_(warm) {}
    void call() override {}
    void warm_up() override { ++warm_; }
    std::optional<double> seconds_elsewhere(Index) override { return seconds_; }

   private:
    double seconds_;
    int& warm_;
  };
  OneCell one;
  for (const double seconds : {warmed_below / 2, warmed_below * 2}) {
    int warm = 0;
    const Timing timing{.make = [&](const Task&) { return std::make_unique<Said>(seconds, warm); }};
    TimedMember member(timing, one.task);
    for (int block = 0; block < 5; ++block) member.turn(TimedMember::Whose::own);
    CHECK(warm == (seconds < warmed_below ? 5 : 1));  // before the first turn nothing is known yet
  }
}

TEST_CASE("what cannot be made has no turns", "[unit]") {
  OneCell one;
  const Timing none{.make = [](const Task&) -> std::unique_ptr<TimedCall> { throw Skip("no form"); }};
  CHECK_THROWS_AS(TimedMember(none, one.task), Skip);
}

TEST_CASE("products of bfloat16 are timed by the instruction or not at all", "[unit]") {
  OneCell one;
  one.cell.problem.shape.precision = Precision::bf16;
  int made = 0;
  const Timing counting{.make = [&](const Task& task) {
    ++made;
    return counted(task);
  }};
  std::string reason;
  try {
    const TimedMember member(counting, one.task);
  } catch (const Skip& skip) {
    reason = skip.what();
  }
  CHECK(made == (bfloat16_products_are_fast ? 1 : 0));
  CHECK(reason.empty() == bfloat16_products_are_fast);
  if (!reason.empty()) CHECK_THAT(reason, ContainsSubstring("has no AVX-512 BF16"));
}

TEST_CASE("a peer takes turns of its own; where there is none, the reason is noted", "[unit]") {
  OneCell one;
  const Timing with{.make = counted, .peer = [](const Task& task, TimedCall&) { return counted(task); }};
  TimedMember member(with, one.task);
  REQUIRE(member.has_peer());
  const double ours = member.turn(TimedMember::Whose::own), theirs = member.turn(TimedMember::Whose::peer);
  auto metrics = recorded(member, {}, {0});
  CHECK(metrics["peer_seconds"] == std::vector<double>{theirs});
  CHECK(metrics["peer_speedup"] == std::vector<double>{theirs / ours});

  const Timing without{.make = counted,
                       .peer = [](const Task&, TimedCall&) -> std::unique_ptr<TimedCall> { throw Skip("not there"); }};
  TimedMember lonely(without, one.task);
  CHECK_FALSE(lonely.has_peer());
  lonely.turn(TimedMember::Whose::own);
  CHECK(recorded(lonely, {}, {0}).contains("note: linear has no peer: not there"));
}

TEST_CASE("a load that slows some blocks by a fifth is marked there, and seldom elsewhere", "[unit]") {
  double loaded = 0, free = 0;
  const std::vector<double> none(24, 0);
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const auto marks = marked(turns(seed, 8, 20), none);  // half of the blocks
    loaded += share(marks, 8, 20) / 50;
    free += (8 * share(marks, 0, 8) + 4 * share(marks, 20, 24)) / 12 / 50;
    CHECK(share(marks, 8, 20) > 0.5);
  }
  CAPTURE(loaded, free);
  // A turn that is slowed by a fifth stays below the bound when its scatter is below log(1.15 / 1.2) = -1.4 standard
  // deviations: 8 %. One that is not exceeds it at 4.7 of them.
  CHECK(loaded > 0.85);
  CHECK(free < 0.02);
}

// It slows the fastest quarter as well, so that the cell's own turns cannot show it; what others did beside them can.
TEST_CASE("a load that lasts through a session is marked by what others did, and no load is not", "[unit]") {
  const auto loaded = turns(3, 0, 24), free = turns(3, 24, 24);
  CHECK(share(marked(loaded, std::vector<double>(24, 0)), 0, 24) < 0.5);
  CHECK(share(marked(loaded, std::vector<double>(24, 1)), 0, 24) == 1);
  CHECK(share(marked(free, std::vector<double>(24, 0)), 0, 24) < 0.2);
}

TEST_CASE("what others did is read off a clock of hundredths of a second, over a quarter of a second at least",
          "[unit]") {
  OthersWork work;
  CHECK(work.cores(0, 1) == 0);
  double busy = 100;
  for (int reading = 0; reading <= 200; ++reading) {  // every 20 ms: a core from 1 s to 2 s, else a fiftieth of one
    const double time = 0.02 * reading;
    work.add(50 + time, std::floor(100 * busy) / 100);
    busy += 0.02 * (time >= 1 && time < 2 ? 1 : 0.02);
  }
  CHECK(std::abs(work.cores(51.4, 51.41) - 1) < 0.1);
  CHECK(std::abs(work.cores(51, 52) - 1) < 0.05);
  CHECK(std::abs(work.cores(50, 54) - 0.265) < 0.02);
  for (const double quiet : {50.0, 50.5, 52.5, 53.99}) {
    CHECK_FALSE(disturbs(work.cores(quiet, quiet + 0.001)));
    CHECK_FALSE(disturbs(work.cores(quiet, quiet + 0.3)));
  }
  CHECK(disturbs(work.cores(51.4, 51.41)));
  CHECK_FALSE(disturbs(work.cores(60, 61)));  // behind the last reading: what was there before it
}

// docs/engines.md names the bound.
TEST_CASE("a quarter of a core of other work disturbs, and less does not", "[unit]") {
  CHECK(disturbs(0.25));
  CHECK_FALSE(disturbs(0.249));
}

TEST_CASE("a turn in which the thread did not run is disturbed", "[unit]") {
  class Asleep final : public TimedCall {
   public:
    void call() override { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }
  };
  Asleep asleep;
  const Turn turn = take_turn(asleep, 2, 1);
  CHECK(turn.preempted);
  CHECK(turn.seconds >= 5e-3);  // by the definition of sleep_for
}

TEST_CASE("what handing a call over takes is taken out of a turn, and what the interpreter takes is not", "[unit]") {
  class Handed final : public TimedCall {
   public:
    void call() override {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      add_handover(4e-3, 1e-6);
    }
  };
  Handed handed;
  const Turn turn = take_turn(handed, 3, 1);
  CHECK(turn.handover.conversion == Approx(4e-3));
  CHECK(turn.handover.interpreter == Approx(1e-6));
  CHECK(turn.seconds >= 1e-3 - 1e-9);                                  // 5 ms at least, less 4
  CHECK(take_turn(handed, 2, 2).handover.conversion == Approx(4e-3));  // one of the two threads makes all calls

  class HandedByTwo final : public TimedCall {
   public:
    void call() override {
      std::thread other([] { add_handover(4e-3, 0); });
      add_handover(2e-3, 0);
      other.join();
    }
  };
  HandedByTwo two;
  CHECK(take_turn(two, 1, 2).handover.conversion == Approx(3e-3));  // side by side

  OneCell one;
  const Timing timing{.make = [](const Task&) { return std::make_unique<Handed>(); }};
  TimedMember member(timing, one.task);
  member.turn(TimedMember::Whose::own);
  auto metrics = recorded(member, {}, {0});
  CHECK(metrics["conversion_seconds"].at(0) == Approx(4e-3));
  CHECK(metrics["interpreter_seconds"].at(0) == Approx(1e-6));
  const Timing plain{.make = counted};
  TimedMember other(plain, one.task);
  other.turn(TimedMember::Whose::own);
  CHECK_FALSE(recorded(other, {}, {0}).contains("conversion_seconds"));

  // So long that nothing else counts: taken out is the conversion, and it alone.
  class HandedForHours final : public TimedCall {
   public:
    void call() override { add_handover(1e4, 1e6); }
  };
  HandedForHours hours;
  CHECK(take_turn(hours, 2, 1).seconds == Approx(-1e4).epsilon(0.1));
}

TEST_CASE("float that is far from double is noted, with the command that says why", "[unit]") {
  const Params method("methods", "performer:m=8");
  Recorder near, far;
  record_rounding(method, 9e-3, near);
  record_rounding(method, 0.5, far);
  CHECK(near.notes().empty());
  REQUIRE(far.notes().size() == 1);
  CHECK(far.notes()[0].find("5.0e-01") != std::string::npos);
  CHECK(far.notes()[0].find("attnbench check performer:m=8") != std::string::npos);
  CHECK(far.take().size() == 1);
}

TEST_CASE("the roofline is the slower of arithmetic and memory", "[unit]") {
  const Rates machine{.fma_peak = 100, .exp_rate = 10, .bandwidth = 5};
  CHECK(roofline_seconds({.work = {.flops = 200, .exps = 30}, .bytes = 10}, machine) == 5);
  CHECK(roofline_seconds({.work = {.flops = 200, .exps = 30}, .bytes = 40}, machine) == 8);
}

TEST_CASE("rates are measured once", "[unit]") {
  const Rates& first = rates(Precision::f32, 1);
  CHECK(&rates(Precision::f32, 1) == &first);
  CHECK(&rates(Precision::f64, 1) != &first);
  const double before = first.fma_peak;  // no two measurements are equal to the last bit
  CHECK(rates(Precision::f32, 1).fma_peak == before);
  for (const double rate : {first.fma_peak, first.exp_rate, first.bandwidth}) CHECK((rate > 0 && std::isfinite(rate)));
}

TEST_CASE("the fraction of a block is that of its own moment", "[unit]") {
  const Demand demand{.work = {.flops = 200, .exps = 30}, .bytes = 40};
  Member member{.seconds = {10, 16, 20}, .rates = {.fma_peak = 100, .exp_rate = 10, .bandwidth = 5}};
  const auto fractions = [&] {
    Recorder recorder;
    record_roofline(member, demand, recorder);
    std::map<std::string, std::vector<double>> all;
    for (auto& one : recorder.take()) all[one.metric] = one.values;
    return all;
  };
  CHECK(fractions()["roofline_fraction"] == std::vector<double>{0.8, 0.5, 0.4});  // 8 seconds, by the bandwidth
  member.arithmetic = {{100, 10}, {10, 5}, {20, 10}};  // 5 and then 26 seconds of arithmetic, and 13
  CHECK(fractions()["roofline_fraction"] == std::vector<double>{0.8, 26.0 / 16, 13.0 / 20});
  CHECK(fractions()["fma_peak"] == std::vector<double>{20});
  CHECK(fractions()["exp_rate"] == std::vector<double>{10});
  CHECK(fractions()["bandwidth"] == std::vector<double>{5});
}

TEST_CASE("the rates of a moment are those of the machine, give or take its clock", "[unit]") {
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    const Rates &known = rates(precision, 1), now = arithmetic_now(precision, 1);
    for (const double ratio : {now.fma_peak / known.fma_peak, now.exp_rate / known.exp_rate})
      CHECK((ratio > 0.05 && ratio < 10));  // no count of operations is forgotten
    CHECK(now.bandwidth == 0);
  }
}

TEST_CASE("the peak of the memory is that of the call", "[unit]") {
  const auto touched = [](size_t bytes) {
    std::vector<char*> pieces;
    for (size_t i = 0; i < bytes; i += 65536) {  // below malloc's threshold for pages of its own
      pieces.push_back(static_cast<char*>(malloc(65536)));
      std::fill_n(pieces.back(), 65536, char(1));
    }
    std::unique_ptr<char, void (*)(void*)> lid(static_cast<char*>(malloc(65536)), free);
    for (char* piece : pieces) free(piece);
    return lid;
  };
  const auto nothing = peak_bytes([] {});
  if (!nothing) return;  // a kernel that does not let the peak be set back: the metric is left out
  // Pages are counted in batches of 64 or more for each core; an address sanitizer adds a shadow of an eighth, and what
  // it keeps of freed memory: an eighth again is room enough, and far from the 64 MB that memory not given back adds.
  CHECK(*nothing < mebibyte);
  const auto lid = touched(64 << 20);  // freed below a lid, so still resident: the call must not find it
  for (int again = 0; again < 2; ++again) {
    const double bytes = peak_bytes([&] { touched(64 << 20); }).value();
    CHECK(bytes > 63 * mebibyte);
    CHECK(bytes < 64 * mebibyte * 10 / 8 + 2 * mebibyte);
  }
  CHECK(*peak_bytes([] {}) < mebibyte);
}

TEST_CASE("an exponent is the slope in logarithms", "[unit]") {
  const std::vector<double> x{1, 2, 4}, y{3, 12, 48};
  CHECK(exponent(x, y) == Approx(2));
  CHECK(exponent(x, std::vector<double>{1, 4, 4}) == Approx(1));
}

TEST_CASE("the last rise through one lies between two points, in logarithms", "[unit]") {
  const std::vector<double> x{16, 32, 64, 128};
  const auto rise = [&](const std::vector<double>& y) { return last_rise_through_one(x, y); };
  CHECK(rise({0.25, 0.5, 2, 4}) == Approx(32 * std::sqrt(2)));
  CHECK(rise({2, 0.5, 0.5, 2}) == Approx(64 * std::sqrt(2)));
  CHECK(rise({0.25, 0.5, 1, 4}) == Approx(64));
  CHECK(rise({1, 1, 2, 4}) == 0);
  CHECK(rise({2, 2, 2, 0.9}) == std::numeric_limits<double>::infinity());
}

TEST_CASE("events are counted in all threads of the process, or not at all", "[unit]") {
  const CountedEvent faults{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS}, unknown{PERF_TYPE_SOFTWARE, 1 << 20};
  CHECK_FALSE(Counters({faults, unknown}).available());
  CHECK_FALSE(Counters({unknown}).counts());
  constexpr size_t pages = 200, bytes = 4096;
  const auto touch = [] {
    void* memory = mmap(nullptr, pages * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    madvise(memory, pages * bytes, MADV_NOHUGEPAGE);
    for (size_t page = 0; page < pages; ++page) static_cast<volatile char*>(memory)[page * bytes] = 1;
    munmap(memory, pages * bytes);
  };
  std::binary_semaphore begin{0};
  std::thread earlier([&] {
    begin.acquire();
    touch();
  });
  const Counters counters({faults});
  if (!counters.available()) {
    // A system that lets no process count: it says so by these errors alone.
    const int why = errno;
    begin.release();
    earlier.join();
    CHECK((why == EACCES || why == EPERM || why == ENOSYS));
    return;
  }
  const double before = counters.counts().value().at(0);
  touch();
  const double here = counters.counts().value().at(0);
  CHECK(here - before >= pages);
  std::thread(touch).join();
  const double started = counters.counts().value().at(0);
  CHECK(started - here >= pages);
  begin.release();
  earlier.join();
  CHECK(counters.counts().value().at(0) - started >= pages);
}

}  // namespace attnbench::timing_test
