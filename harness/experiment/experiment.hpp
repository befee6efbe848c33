// Experiments are questions asked of a method. An experiment turns a cell into measurements, or throws Skip with the
// reason why it cannot.
#pragma once

#include <variant>

#include "harness/core/approximation.hpp"
#include "harness/experiment/exact.hpp"
#include "harness/experiment/work.hpp"
#include "harness/store/better.hpp"
#include "harness/store/measurement.hpp"

namespace attnbench {

class Recorder {
 public:
  void scalar(std::string metric, std::string unit, double value);
  void array(std::string metric, std::string unit, std::vector<Index> shape, std::vector<double> values);
  // Records a message that the user sees after the run, such as a number that could not be estimated.
  void note(std::string text) { notes_.push_back(std::move(text)); }
  std::vector<Measurement> take() { return std::move(measurements_); }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  std::vector<Measurement> measurements_;
  std::vector<std::string> notes_;
};

// Draws a cell's method for one head many times but fits it once. Tensors that are equal in two draws are taken as
// fitted.
class MethodDraws {
 public:
  MethodDraws(const Cell& cell, Index replicate, Index head);
  std::unique_ptr<Approximation<double>> operator()(Index draw) const;
  // Later draws have these tensors in their state, and draw the others.
  void hold(const Tensors& given) { fitted_.insert(given.begin(), given.end()); }

 private:
  const Cell& cell_;
  Index head_;
  Tensors fitted_;
};

// One replicate of one cell.
struct Task {
  const Cell& cell;
  Index replicate;
  Context& context;
  ExactCache& exact;
  // Called with the current step ("drawing"), so that the runner can report where a method died; may be empty.
  std::function<void(const char*)> doing = {};

  // Draws the method for head `head` with the streams of draw `draw`. Fitted methods learn from the calibration head.
  template <class T>
  std::unique_ptr<Approximation<T>> method(Index head, Index draw) const;
  // The theory of the method's kernel, after the method has learnt from the calibration head.
  std::optional<KernelTheory> theory(Index head) const;
  // The method drawn in the cell's precision, with the head that it was given and its output. An experiment that
  // reports more about the method asks this instance, so that all its numbers belong to one draw.
  struct Applied {
    template <class T>
    struct Instance {
      HeadData<T> head;
      std::unique_ptr<Approximation<T>> method;
    };
    std::variant<Instance<float>, Instance<double>> instance;
    Matrix<double> output;     // nq x dv
    Matrix<double> attention;  // nq x nk; empty without matrix
  };
  // Throws Skip if the method has no attention matrix.
  Applied applied() const;
  // Leaves `attention` empty, so it needs no n x n memory.
  Applied applied_without_matrix() const;
  Matrix<double> output() const { return applied_without_matrix().output; }
};

// Bytes of one nq x nk matrix in double.
double matrix_bytes(const Cell& cell);

struct Metric {
  std::string name, unit, text;
  Better better = Better::unstated;  // unless the unit says it (better_by_unit)
  std::string label = {};            // of an axis; empty: the text
  std::string scale = "linear";      // of an axis: linear, log2 or log10
  bool by_block = false;             // one number for each block of turns, where time is measured
};

inline Metric by_block(Metric metric) {
  metric.by_block = true;
  return metric;
}

// The metric that a figure of a run shows first.
struct Headline {
  std::string metric, label;
  std::string theory = {};  // the metric that is its closed form
};

class TimedCall;
struct Member;

// How an experiment measures time. Cells that differ only in method and length are timed together: they take turns,
// each in its own worker, with nothing else running on the machine (harness/timing/turns.hpp).
struct Timing {
  // Draws and checks the call that is timed. Skip and NumericallyInvalid end only this cell.
  std::function<std::unique_ptr<TimedCall>(const Task&)> make;
  // Adds measurements to those of the turns.
  std::function<void(const Task&, const Member&, Recorder&)> record = {};
  // Makes another implementation of the same computation as `ours`, which takes turns as well. Returns null if none was
  // requested. Throws Skip if this cell has no such implementation; the reason becomes a note.
  std::function<std::unique_ptr<TimedCall>(const Task&, TimedCall& ours)> peer = {};
};

struct ExperimentEntry {
  static constexpr const char* kind = "experiment";
  static constexpr const char* plural = "experiments";

  Description text;
  std::vector<Parameter> parameters;
  std::vector<Metric> metrics;
  Headline headline;
  // Throws Misuse for impossible options, sizes or precisions, before anything runs.
  std::function<void(const Cell&)> check = [](const Cell&) {};
  // Bytes that a cell holds at once in addition to its heads.
  std::function<double(const Cell&)> bytes = [](const Cell&) { return 0.0; };
  // Work of one replicate in addition to drawing its heads (harness/experiment/work.hpp has the parts).
  std::function<Work(const Cell&)> work = [](const Cell& cell) { return work_of_layers(cell, 1); };
  std::function<void(const Task&, Recorder&)> run = {};
  std::optional<Timing> timed = {};  // instead of `run`
  // For a request that does not say. Without a precision: f32 if time is measured, else f64.
  std::optional<Precision> usual_precision = {};
  Index usual_replicates = 1;
  // How many replicates of all these cells are recorded. Null: the experiment measures them.
  std::function<Index(const std::vector<Cell>&)> recorded = {};
  // Words that a verdict on these cells adds to its numbers, such as when they were recorded.
  std::function<std::string(const std::vector<Cell>&, Index replicates)> remark = {};
  bool whole_model = false;  // it measures all heads of the input's model together
  bool timing() const { return timed.has_value(); }
};

extern template class Registry<ExperimentEntry>;

// As an experiment with a metric of that name states it, otherwise by unit.
Better better_of(const std::string& metric, const std::string& unit);

// Approximate bytes of a cell: its heads and what its experiment holds in addition to them.
double cell_bytes(const Cell& cell);

}  // namespace attnbench
