// Timing in turns. Cells that differ only in method and length form a session. In each block every member at every
// length takes one turn, and so does exact softmax at each of these lengths, in an order drawn from the seed. A turn is
// one Google Benchmark run of fixed iterations. A block gives one ratio to softmax and one exponent of the length. The
// experiment makes and checks the call that is timed. Each member lives in its own worker; the runner sets the order
// (harness/workers/timing_session.hpp).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "harness/experiment/experiment.hpp"
#include "harness/machine/rates.hpp"
#include "harness/timing/handover.hpp"

namespace attnbench {

// The code that is timed: the drawn methods of one cell with their heads and the memory of their results.
class TimedCall {
 public:
  virtual ~TimedCall() = default;
  virtual void call() = 0;
  // Called before each turn of short calls (warmed_below), because the turns of others have emptied the caches.
  virtual void warm_up() { call(); }
  // Called untimed before each turn, with the number of calls that follow.
  virtual void before_turn(Index calls) { (void)calls; }
  // Seconds per call, if another process or a device makes and times these calls; nullopt: they are timed here.
  virtual std::optional<double> seconds_elsewhere(Index calls) {
    (void)calls;
    return std::nullopt;
  }
  // The most calls that a turn may make.
  virtual Index most_calls() const { return 1'000'000; }
  // Records facts besides times, such as the rounding error that its check found.
  virtual void record(Recorder&) const {}
};

// A turn of calls shorter than this begins with one call that is not timed. Between the turns of longer calls, a
// training step of 2.6 ms took 7 % longer than alone without that call, and 3 % with it. The 0.2 ms are 1 % of 20 ms.
inline constexpr double warmed_below = 0.02;

// Number of calls that fill a turn of that length. Uses the fastest of up to three calls, because one may have been
// interrupted.
Index calls_of_a_turn(TimedCall& subject, double turn_seconds);

// One run of so many calls. `seconds` excludes the time of handing them over to another language (handover.hpp).
// preempted: something else had the processor. With one thread, its processor time is below 95 % of the wall time. With
// several threads, which wait for each other anyway, one of them was preempted.
struct Turn {
  double seconds = 0;  // of one call
  bool preempted = false;
  Handover handover = {};  // of one call; of the turn where a device has the inputs of all its calls
};
Turn take_turn(TimedCall& subject, Index iterations, int threads);

struct Member {
  std::unique_ptr<TimedCall> subject = {};
  Index iterations = 1;                // calls in a turn
  std::vector<double> seconds = {};    // of one call, one sample per block
  std::vector<double> preempted = {};  // 1: that turn was preempted
  std::vector<Handover> handovers = {};
  std::vector<Rates> arithmetic = {};  // after each turn; none on a device
  Rates rates = {};  // of the machine, at the cell's precision and threads; set when the cell is recorded
};

// Marks with 1 the turns that took 15 % longer than the fastest quarter. 15 % lies between the scatter of a quiet
// machine (docs/engines.md) and a fifth. This detects any slowdown, on this machine or another one on its host, unless
// it lasted for three quarters of the session.
std::vector<double> slower_turns(const std::vector<double>& seconds);

// Facts about the turns of one cell that only the runner knows.
struct Surroundings {
  std::vector<double> exact = {};   // seconds of softmax in the same blocks; empty: not measured
  std::vector<double> load = {};    // cores that other processes kept busy around each turn
  std::vector<double> beside = {};  // 1: they kept enough cores busy to disturb the turn
  double session = 0;               // start of its blocks, in seconds since 1970
  Rates rates = {};
};

// The options of an experiment that measures in turns, and the metrics recorded for each of its cells. Append further
// ones.
std::vector<Parameter> turn_parameters();
std::vector<Metric> turn_metrics();

// One member of a session, with its peer if it has one.
class TimedMember {
 public:
  // Makes, checks and calls it untimed. Throws Skip or NumericallyInvalid if it cannot take turns.
  TimedMember(const Timing& timing, const Task& task);

  bool has_peer() const { return peer_.subject != nullptr; }
  enum class Whose { own, peer };
  // Takes a turn, keeps its result, and returns the seconds of one call.
  double turn(Whose whose);
  // Records everything. Without turns of softmax there are no pairs. Measures peak memory in a separate call.
  void record(const Surroundings& around, Recorder& record);

 private:
  std::vector<double> disturbed(const std::vector<double>& beside) const;

  const Timing& timing_;
  Task task_;
  Member own_, peer_;
  Recorder noted_;  // notes from its construction
};

// A warning if float's output is farther from double's than 1 % of its norm: weights of both signs may cancel, or the
// method is wrong in float. Otherwise empty.
std::string rounding_warning(const std::string& method, double rounding);
// Records how far float's output is from double's, relative to its norm, and notes the warning.
void record_rounding(const Params& method, double rounding, Recorder& record);

}  // namespace attnbench
