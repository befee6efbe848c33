// Turns, rooflines and peak memory. Nothing here asserts how long something takes: only what follows from times.
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>

#include "harness/machine/peak_memory.hpp"
#include "harness/runner/plan.hpp"
#include "harness/statistics/power_law.hpp"
#include "harness/timing/roofline.hpp"
#include "tests/catch.hpp"

using namespace attnbench;

namespace {

constexpr double mebibyte = 1 << 20;

// What a group of `speed` cells with these methods ends as, when `make` makes what is timed.
struct Group {
  std::map<std::string, Ending> endings;
  std::map<std::string, std::map<std::string, std::vector<double>>> metrics;  // by method and metric
  std::vector<std::string> made;
};

class Counted final : public TimedCall {
 public:
  void call() override { ++calls_; }
  void record(Recorder& recorder) const override { recorder.scalar("calls", "1", static_cast<double>(calls_)); }

 private:
  Index calls_ = 0;
};

Group run_group(const std::vector<std::string>& methods,
                const std::function<std::unique_ptr<TimedCall>(const std::string&)>& make) {
  const auto cells = expand({.experiment = "speed:blocks=5,turn=0.01",
                             .methods = methods,
                             .inputs = {"gaussian"},
                             .n = {8},
                             .d = {4},
                             .precision = Precision::f32});
  Context context;
  ExactCache exact;
  std::vector<Task> tasks;
  for (const Cell& cell : cells) tasks.push_back({cell, 0, context, exact});
  Group group;
  run_in_turns(
      tasks,
      [&](const Task& task) {
        group.made.push_back(task.cell.method.spec());
        return make(task.cell.method.spec());
      },
      [&](const Task&, const Member& member, const Member* partner, Recorder& recorder) {
        recorder.scalar("with partner", "1", partner ? 1 : 0);
        recorder.scalar("is the partner", "1", partner == &member ? 1 : 0);
      },
      [&](size_t place, const Ending& ending, Recorder& recorder) {
        const std::string method = tasks[place].cell.method.spec();
        group.endings[method] = ending;
        for (const auto& m : recorder.take()) group.metrics[method][m.metric] = m.values;
      });
  return group;
}

std::unique_ptr<TimedCall> counted(const std::string&) { return std::make_unique<Counted>(); }

}  // namespace

TEST_CASE("every member has a turn in every block, and the same partner", "[unit]") {
  Group group = run_group({"linear", "uniform"}, counted);
  CHECK(group.made == std::vector<std::string>{"linear", "uniform", "softmax"});
  for (const char* method : {"linear", "uniform"}) {
    auto& metrics = group.metrics[method];
    CHECK(group.endings[method].kind == Ending::Kind::done);
    CHECK(metrics["with partner"][0] == 1);
    for (const char* array : {"seconds", "speedup", "disturbed"}) CHECK(metrics[array].size() == 5);
    // One call finds the length of a turn, and where the peak of the memory can be had one finds that.
    const double untimed = metrics.contains("peak_bytes") ? 2 : 1;
    CHECK(metrics["calls"][0] >= 5 * metrics["iterations"][0] + untimed);
    for (const double mark : metrics["disturbed"]) CHECK((mark == 0 || mark == 1));
  }
}

TEST_CASE("softmax as it is by default is the partner, another form of it is not", "[unit]") {
  Group group = run_group({"softmax", "softmax:form=materialised"}, counted);
  CHECK(group.made.size() == 2);
  CHECK(group.metrics["softmax"]["is the partner"][0] == 1);
  CHECK(group.metrics["softmax:form=materialised"]["is the partner"][0] == 0);
  CHECK(group.metrics["softmax"]["speedup"] == std::vector<double>(5, 1.0));
}

TEST_CASE("what cannot be made ends its own cell, and without softmax there are no pairs", "[unit]") {
  Group group = run_group({"linear", "uniform", "local"}, [](const std::string& method) -> std::unique_ptr<TimedCall> {
    if (method == "linear") throw Skip("no form");
    if (method == "uniform") throw NumericallyInvalid("overflow");
    if (method == "softmax") throw Skip("none");
    return std::make_unique<Counted>();
  });
  CHECK(group.endings["linear"].kind == Ending::Kind::skipped);
  CHECK(group.endings["linear"].reason == "no form");
  CHECK(group.endings["uniform"].kind == Ending::Kind::invalid);
  CHECK(group.endings["local"].kind == Ending::Kind::done);
  CHECK(group.metrics["local"]["with partner"][0] == 0);
  CHECK_FALSE(group.metrics["local"].contains("speedup"));
  CHECK(group.metrics["local"]["seconds"].size() == 5);
}

TEST_CASE("a turn in which the thread did not run is disturbed", "[unit]") {
  class Asleep final : public TimedCall {
   public:
    void call() override { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }
  };
  Asleep asleep;
  const Turn turn = take_turn(asleep, 2, 1);
  CHECK(turn.disturbed);
  CHECK(turn.seconds >= 5e-3);  // by the definition of sleep_for
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
  for (const double rate : {first.fma_peak, first.exp_rate, first.bandwidth}) CHECK((rate > 0 && std::isfinite(rate)));
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
