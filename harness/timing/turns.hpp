// Timing in turns. Cells that differ in method and length alone form a session: in each block every member at every
// length, and exact softmax at each of these lengths, have one turn, in an order drawn from the seed; a turn is one
// Google Benchmark run of fixed iterations, and a block gives one ratio to softmax and one exponent of the length. What
// takes a turn is made, and checked, by the experiment. Each member lives in a worker of its own; the order is the
// runner's (harness/workers/timing_session.hpp).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "harness/experiment/experiment.hpp"
#include "harness/machine/rates.hpp"
#include "harness/timing/handover.hpp"

namespace attnbench {

// What is timed: the drawn methods of one cell with their heads and the memory of their results.
class TimedCall {
 public:
  virtual ~TimedCall() = default;
  virtual void call() = 0;
  // Called before each turn of calls that are short (warmed_below): the turns of others have emptied the caches.
  virtual void warm_up() { call(); }
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

// Seconds of a call below which a turn begins with one that is not timed. A training step of 2.6 ms took 7 % longer
// between the turns of longer ones than by itself without that call, and 3 % with it. The 0.2 ms are 1 % of 20 ms.
inline constexpr double warmed_below = 0.02;

// Calls that make a turn of about so long, from the fastest of up to three: one may have been interrupted.
Index calls_of_a_turn(TimedCall& subject, double turn_seconds);

// One run of so many calls. What handing them over to another language took (handover.hpp) is not in `seconds`.
// preempted: something else had the processor. With one thread, when its processor time is
// below 95 % of the wall time; with several, which rightly wait for each other, when one of them was preempted.
struct Turn {
  double seconds = 0;  // of one call
  bool preempted = false;
  Handover handover = {};  // of one call
};
Turn take_turn(TimedCall& subject, Index iterations, int threads);

struct Member {
  std::unique_ptr<TimedCall> subject = {};
  Index iterations = 1;                // calls in a turn
  std::vector<double> seconds = {};    // of one call, a sample a block
  std::vector<double> preempted = {};  // 1: that turn was
  std::vector<Handover> handovers = {};
  Rates rates = {};  // of the machine, at the cell's precision and threads; known when it is recorded
};

// Which of a cell's turns took 15 % longer than the fastest quarter of them, as 0 or 1: between the scatter of a quiet
// machine (docs/engines.md) and a fifth. Whatever slowed them, in
// this machine or in another one on its host, is seen, unless it lasted through three quarters of the session.
std::vector<double> slower_turns(const std::vector<double>& seconds);

// Facts on the turns of one cell that only the runner knows.
struct Surroundings {
  std::vector<double> exact = {};   // seconds of softmax in the same blocks; empty: it was not measured
  std::vector<double> load = {};    // cores that others kept busy around each turn
  std::vector<double> beside = {};  // 1: so many that they disturb
  double session = 0;               // when its blocks began, in seconds since 1970
  Rates rates = {};
};

// The options of an experiment that measures in turns, and the metrics that are recorded for each of its cells: add
// further ones behind them.
std::vector<Parameter> turn_parameters();
std::vector<Metric> turn_metrics();

// One member of a session, with its peer where it has one.
class TimedMember {
 public:
  // Makes, checks and calls it untimed. Throws Skip and NumericallyInvalid when it can have no turns.
  TimedMember(const Timing& timing, const Task& task);

  bool has_peer() const { return peer_.subject != nullptr; }
  enum class Whose { own, peer };
  // Takes a turn and keeps what it gave. Returns seconds of one call.
  double turn(Whose whose);
  // Without turns of softmax there are no pairs. Measures peak memory in a call of its own.
  void record(const Surroundings& around, Recorder& record);

 private:
  std::vector<double> disturbed(const std::vector<double>& beside) const;

  const Timing& timing_;
  Task task_;
  Member own_, peer_;
  Recorder noted_;  // while it was made
};

}  // namespace attnbench
