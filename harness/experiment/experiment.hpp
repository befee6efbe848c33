// Experiments: questions asked of a method. One turns a cell into measurements, or says why it has none (Skip).
#pragma once

#include <variant>

#include "harness/core/approximation.hpp"
#include "harness/experiment/exact.hpp"
#include "harness/experiment/work.hpp"
#include "harness/store/measurement.hpp"

namespace attnbench {

class Recorder {
 public:
  void scalar(std::string metric, std::string unit, double value);
  void array(std::string metric, std::string unit, std::vector<Index> shape, std::vector<double> values);
  // What a user should be told once the run is over, such as a number that could not be estimated.
  void note(std::string text) { notes_.push_back(std::move(text)); }
  std::vector<Measurement> take() { return std::move(measurements_); }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  std::vector<Measurement> measurements_;
  std::vector<std::string> notes_;
};

// Many draws of a cell's method for one head, fitted once: what two draws share is what was fitted.
class MethodDraws {
 public:
  MethodDraws(const Cell& cell, Index replicate, Index head);
  std::unique_ptr<Approximation<double>> operator()(Index draw) const;

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
  // Told what is being done ("drawing"), so that the runner can say where a method died; may be empty.
  std::function<void(const char*)> doing = {};

  // The method, drawn for that head with that draw's streams. Fitted methods learn from the calibration head.
  template <class T>
  std::unique_ptr<Approximation<T>> method(Index head, Index draw) const;
  // What the method's kernel estimates, given what it learns from.
  std::optional<KernelTheory> theory(Index head) const;
  // The method as it was drawn in the cell's precision, with the head that it was given and what it made of it: an
  // experiment that reports more of the method asks this instance, so that all its numbers are of one.
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
  // Throws Skip where the method has no attention matrix.
  Applied applied() const;
  // Takes no n x n matrix.
  Applied applied_without_matrix() const;
  Matrix<double> output() const { return applied_without_matrix().output; }
};

// Bytes of one nq x nk matrix in double.
double matrix_bytes(const Cell& cell);

struct Metric {
  std::string name, unit, text;
};

// What a figure of a run shows first.
struct Headline {
  std::string metric, label;
  std::string theory = {};  // a metric that is its closed form
};

class TimedCall;
struct Member;

// How an experiment measures time: cells that differ in method and length alone are measured together, in turns, alone
// on the machine, each in a worker of its own (harness/timing/turns.hpp).
struct Timing {
  // Draws and checks what is timed of a cell. Skip and NumericallyInvalid end that cell alone.
  std::function<std::unique_ptr<TimedCall>(const Task&)> make;
  // Adds to what the turns gave.
  std::function<void(const Task&, const Member&, Recorder&)> record = {};
  // The same as `ours` in another implementation, to take turns as well; null: none was asked for. A Skip, whose reason
  // is noted: it has none.
  std::function<std::unique_ptr<TimedCall>(const Task&, TimedCall& ours)> peer = {};
};

struct ExperimentEntry {
  static constexpr const char* kind = "experiment";
  static constexpr const char* plural = "experiments";

  Description text;
  std::vector<Parameter> parameters;
  std::vector<Metric> metrics;
  Headline headline;
  // Throws Misuse for options, sizes or a precision that cannot be, before anything runs.
  std::function<void(const Cell&)> check = [](const Cell&) {};
  // Bytes that a cell holds at once beside its heads.
  std::function<double(const Cell&)> bytes = [](const Cell&) { return 0.0; };
  // What one replicate computes beside drawing its heads (harness/experiment/work.hpp has the parts).
  std::function<Work(const Cell&)> work = [](const Cell& cell) { return work_of_layers(cell, 1); };
  std::function<void(const Task&, Recorder&)> run = {};
  std::optional<Timing> timed = {};  // instead of `run`
  bool timing() const { return timed.has_value(); }
};

// About how many bytes a cell takes: its heads, and what its experiment holds beside them.
double cell_bytes(const Cell& cell);

}  // namespace attnbench
