// Experiments that cost nothing: what is left is the runner.
#include <signal.h>

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

class Nothing final : public TimedCall {
 public:
  void call() override {}
};

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
          return all;
        }(),
    .metrics = turn_metrics(),
    .headline = {.metric = "seconds", .label = "seconds"},
    .timed = Timing{.make = [](const Task& task) -> std::unique_ptr<TimedCall> {
      if (task.cell.method.name() == "softmax" && !task.cell.experiment.flag("exact")) raise(SIGKILL);
      if (task.cell.method.name() == "linear") throw Skip("no form");
      return std::make_unique<Nothing>();
    }},
});

}  // namespace
}  // namespace attnbench
