// Timing in turns. Cells with the same problem and input form a group: in each block every member of the group and
// exact softmax have one turn, in an order drawn from the seed; a turn is one Google Benchmark run of fixed iterations,
// and a block gives one ratio to softmax. What takes a turn is made, and checked, by the experiment.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "harness/runner/experiment.hpp"

namespace attnbench {

// What is timed: the drawn methods of one cell with their heads and the memory of their results.
class TimedCall {
 public:
  virtual ~TimedCall() = default;
  virtual void call() = 0;
  // Called before each turn, untimed, with the number of calls that it will make.
  virtual void before_turn(Index calls) { (void)calls; }
  // Seconds of each of so many calls, where another process makes and times them; nothing: they are timed here.
  virtual std::optional<double> seconds_elsewhere(Index calls) {
    (void)calls;
    return std::nullopt;
  }
  // More calls than this are no turn.
  virtual Index most_calls() const { return 1'000'000; }
  // What is known of it beside its times, such as the rounding error that its check found.
  virtual void record(Recorder&) const {}
};

// Calls that make a turn of about so long, from the fastest of up to three: one may have been interrupted.
Index calls_of_a_turn(TimedCall& subject, double turn_seconds);

// One run of so many calls. disturbed: something else had the processor. With one thread, when its processor time is
// below 95 % of the wall time; with several, which rightly wait for each other, when one of them was preempted.
struct Turn {
  double seconds = 0;  // of one call
  bool disturbed = false;
};
Turn take_turn(TimedCall& subject, Index iterations, int threads);

struct Member {
  std::unique_ptr<TimedCall> subject;
  Index iterations = 1;                // calls in a turn
  std::vector<double> seconds = {};    // of one call, a sample a block
  std::vector<double> disturbed = {};  // 1: that turn was; marked, never discarded
};

// The options of an experiment that measures in turns, and the metrics that run_in_turns records for each of its cells:
// add further ones behind them.
std::vector<Parameter> turn_parameters();
std::vector<Metric> turn_metrics();

// Draws and checks what is timed of a cell. Skip and NumericallyInvalid end that cell alone.
using MakeTimedCall = std::function<std::unique_ptr<TimedCall>(const Task&)>;
// Adds to what the turns gave. exact: softmax measured in the same blocks, or null when it was not.
using RecordMember = std::function<void(const Task&, const Member& member, const Member* exact, Recorder&)>;

// The same as `ours` in another implementation, to take turns as well. A Skip, whose reason is noted: it has none.
using MakePeer = std::function<std::unique_ptr<TimedCall>(const Task&, TimedCall& ours)>;

// One group, as ExperimentEntry::run_group wants it. The exact partner is made in the same way when no cell of the
// group is softmax as it is by default.
void run_in_turns(std::vector<Task>& tasks, const MakeTimedCall& make, const RecordMember& record,
                  const std::function<void(size_t, Ending, Recorder&)>& done, const MakePeer& make_peer = {});

}  // namespace attnbench
