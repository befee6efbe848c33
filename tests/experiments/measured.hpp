// One replicate of one cell, run in this process: what its experiment recorded.
#pragma once

#include <map>

#include "harness/experiment/experiment.hpp"
#include "harness/timing/turns.hpp"

namespace attnbench {

struct Measured {
  std::map<std::string, std::vector<double>> values;  // metric -> its numbers; a scalar has one
  std::vector<std::string> notes;

  bool has(const std::string& metric) const { return values.contains(metric); }
  // Of a scalar; an array has no one number.
  double operator[](const std::string& metric) const {
    const auto& numbers = values.at(metric);
    if (numbers.size() != 1) throw std::logic_error(metric + " is not a scalar");
    return numbers[0];
  }
};

inline Cell double_cell(const std::string& experiment, const std::string& method,
                        Shape shape = {.nq = 24, .nk = 24, .d = 4, .dv = 6}, const std::string& input = "gaussian") {
  shape.precision = Precision::f64;
  return {.experiment = Params("experiments", experiment),
          .method = Params("methods", method),
          .input = Params("inputs", input),
          .problem = {.shape = shape}};
}

inline Measured measured(const Cell& cell, Index replicate = 0, int threads = 1) {
  const auto& entry = find<ExperimentEntry>(cell.experiment.name());
  entry.check(cell);
  Context context(threads);
  ExactCache exact;
  Recorder recorder;
  entry.run({cell, replicate, context, exact}, recorder);
  Measured all{.values = {}, .notes = recorder.notes()};
  for (auto& m : recorder.take()) {
    Index size = 1;
    for (const Index extent : m.shape) size *= extent;
    if (size != std::ssize(m.values)) throw std::logic_error(m.metric + " has another shape than it says");
    all.values[m.metric] = std::move(m.values);
  }
  return all;
}

constexpr Rates made_up_rates{.fma_peak = 1e9, .exp_rate = 2e9, .bandwidth = 3e9};

// The measurements of a timed experiment after two turns, beside made-up facts of the machine.
inline std::vector<Measurement> measured_turns(const Task& task) {
  TimedMember member(*find<ExperimentEntry>(task.cell.experiment.name()).timed, task);
  for (int turn = 0; turn < 2; ++turn) member.turn(TimedMember::Whose::own);
  Recorder recorder;
  member.record({.exact = {1, 1}, .load = {0, 0}, .beside = {0, 0}, .session = 1, .rates = made_up_rates}, recorder);
  return recorder.take();
}

// The numbers of one of them; none if it was not recorded.
inline std::vector<double> numbers_of(const std::vector<Measurement>& all, const std::string& metric) {
  for (const auto& one : all)
    if (one.metric == metric) return one.values;
  return {};
}

// Why the experiment has no number for that cell; empty when it has.
inline std::string skip_of(const Cell& cell) {
  try {
    measured(cell);
  } catch (const Skip& skip) {
    return skip.what();
  }
  return "";
}

}  // namespace attnbench
