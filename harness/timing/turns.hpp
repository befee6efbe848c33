// Timing in turns. Cells with the same problem and input form a group: in each block every member of the group and
// exact softmax have one turn, in an order drawn from the seed; a turn is one Google Benchmark run of fixed iterations,
// and a block gives one ratio to softmax. What takes a turn is made, and checked, by the experiment. Each member lives
// in a worker of its own; the order is the runner's (harness/workers/timing_group.hpp).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "harness/machine/rates.hpp"
#include "harness/runner/experiment.hpp"
#include "harness/timing/handover.hpp"

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

// One run of so many calls. What handing them over to another language took (handover.hpp) is not in `seconds`.
// disturbed: something else had the processor. With one thread, when its processor time is
// below 95 % of the wall time; with several, which rightly wait for each other, when one of them was preempted.
struct Turn {
  double seconds = 0;  // of one call
  bool disturbed = false;
  Handover handover = {};  // of one call
};
Turn take_turn(TimedCall& subject, Index iterations, int threads);

struct Member {
  std::unique_ptr<TimedCall> subject = {};
  Index iterations = 1;                // calls in a turn
  std::vector<double> seconds = {};    // of one call, a sample a block
  std::vector<double> disturbed = {};  // 1: that turn was; marked, never discarded
  std::vector<Handover> handovers = {};
  Rates rates = {};  // of the machine, at the cell's precision and threads; known when it is recorded
};

// The options of an experiment that measures in turns, and the metrics that are recorded for each of its cells: add
// further ones behind them.
std::vector<Parameter> turn_parameters();
std::vector<Metric> turn_metrics();

// One member of a group, with its peer where it has one.
class TimedMember {
 public:
  // Makes, checks and calls it untimed. Throws Skip and NumericallyInvalid when it can have no turns.
  TimedMember(const Timing& timing, const Task& task);

  bool has_peer() const { return peer_.subject != nullptr; }
  enum class Whose { own, peer };
  // Takes a turn and keeps what it gave. Returns seconds of one call.
  double turn(Whose whose);
  // exact: seconds of softmax in the same blocks; empty: it was not measured, and there are no pairs. load: cores that
  // others kept busy just before the group. Measures peak memory in a call of its own.
  void record(const std::vector<double>& exact, double load, const Rates& rates, Recorder& record);

 private:
  const Timing& timing_;
  Task task_;
  Member own_, peer_;
  Recorder noted_;  // while it was made
};

}  // namespace attnbench
