// Experiments: questions asked of a method. One turns a cell into measurements, or says why it has none (Skip).
#pragma once

#include "harness/core/approximation.hpp"
#include "harness/runner/exact.hpp"

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

  // The method, drawn for that head with that draw's streams. Fitted methods learn from the calibration head.
  template <class T>
  std::unique_ptr<Approximation<T>> method(Index head, Index draw) const;
  // What the method's kernel estimates, given what it learns from.
  std::optional<KernelTheory> theory(Index head) const;
  // The attention matrix of the method in the cell's precision, and its output, from the same instance.
  struct Applied {
    Matrix<double> attention;  // nq x nk
    Matrix<double> output;     // nq x dv
  };
  Applied applied() const;
  // That output alone, which takes no n x n matrix.
  Matrix<double> output() const;
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
  std::function<void(const Task&, Recorder&)> run;
  // Timing: cells that share problem and input are measured together, in turns, alone on the machine. `run` is then
  // not used; done is called with each cell's place in `tasks` as soon as its measurements are complete.
  std::function<void(std::vector<Task>& tasks, const std::function<void(size_t, Ending, Recorder&)>& done)> run_group =
      {};
  bool timing() const { return static_cast<bool>(run_group); }
};

}  // namespace attnbench
