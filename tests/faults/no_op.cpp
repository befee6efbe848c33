// Experiments that cost nothing: what is left is the runner.
#include <signal.h>

#include <chrono>
#include <thread>

#include "harness/timing/turns.hpp"

namespace attnbench {
namespace {

const bool statistics = add(ExperimentEntry{
    .text = {.name = "no-op",
             .summary = "nothing: what a run itself costs",
             .formula = "0",
             .reference = "none",
             .cost = "O(1)"},
    .parameters = {Parameter::integer("cell", 0, "makes cells different", 0)},
    .metrics = {{"nothing", "1", "0"}},
    .headline = {.metric = "nothing", .label = "nothing"},
    .run = [](const Task&, Recorder& record) { record.scalar("nothing", "1", 0); },
});

// elsewhere: it sleeps for that many seconds and says that a call took a millisecond, as a device would, so that
// nothing on this machine changes its own time.
class Nothing final : public TimedCall {
 public:
  explicit Nothing(double elsewhere) : elsewhere_(elsewhere) {}
  void call() override {}
  std::optional<double> seconds_elsewhere(Index) override {
    if (elsewhere_ == 0) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::duration<double>(elsewhere_));
    return 1e-3;
  }
  void before_turn(Index) override {
    when_.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count());
  }
  void record(Recorder& recorder) const override { recorder.array("when", "s", {std::ssize(when_)}, when_); }

 private:
  double elsewhere_;
  std::vector<double> when_;
};

std::vector<Metric> metrics() {
  auto all = turn_metrics();
  all.push_back({"when", "s", "when each turn began, by a clock that all processes share"});
  return all;
}

const bool timing = add(ExperimentEntry{
    .text = {.name = "timed-no-op",
             .summary = "turns of nothing",
             .formula = "0",
             .reference = "none",
             .cost = "blocks x turn"},
    .parameters =
        [] {
          auto all = turn_parameters();
          all.push_back(Parameter::flag("exact", true, "softmax can be made"));
          all.push_back(
              Parameter::real("elsewhere", 0, "seconds of a turn that is timed elsewhere; 0: timed here", 0, 10));
          return all;
        }(),
    .metrics = metrics(),
    .headline = {.metric = "seconds", .label = "seconds"},
    .timed = Timing{.make = [](const Task& task) -> std::unique_ptr<TimedCall> {
      if (task.cell.method.name() == "softmax" && !task.cell.experiment.flag("exact")) raise(SIGKILL);
      if (task.cell.method.name() == "linear") throw Skip("no form");
      return std::make_unique<Nothing>(task.cell.experiment.real("elsewhere"));
    }},
});

}  // namespace
}  // namespace attnbench
