#include "harness/python/recording.hpp"

#include <fmt/format.h>
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include "harness/errors/error.hpp"
#include "harness/experiment/cell_row.hpp"
#include "harness/experiment/experiment.hpp"
#include "harness/figures/run_figure.hpp"
#include "harness/runner/figure.hpp"
#include "harness/store/environment.hpp"
#include "harness/store/store.hpp"

namespace attnbench {

namespace py = pybind11;

namespace {

using Numbers = py::array_t<double, py::array::c_style | py::array::forcecast>;

// One replicate of one method, as the caller gives it. An ending other than done has a reason and no values.
struct Given {
  Index replicate;
  std::string ending, reason;
  double seconds;
  std::vector<std::pair<std::string, Numbers>> values;  // by metric

  explicit Given(const py::handle& row) {
    std::tie(replicate, ending, reason, seconds, values) =
        row.cast<std::tuple<Index, std::string, std::string, double, std::vector<std::pair<std::string, Numbers>>>>();
  }
};

// Units are those that the experiment declares. Throws Misuse for a metric that it does not have, and for NaN.
Measurement measurement_of(const ExperimentEntry& experiment, const std::string& metric, const Numbers& values) {
  std::vector<std::string> known;
  for (const Metric& declared : experiment.metrics) {
    known.push_back(declared.name);
    if (declared.name != metric) continue;
    Measurement made{metric, declared.unit, {}, {values.data(), values.data() + values.size()}};
    for (py::ssize_t axis = 0; axis < values.ndim(); ++axis) made.shape.push_back(values.shape(axis));
    for (const double value : made.values)
      if (std::isnan(value))
        throw Misuse(
            fmt::format("record: {} is NaN; give attnbench.NumericallyInvalid(REASON) for that replicate", metric));
    return made;
  }
  throw Misuse(fmt::format("record: {} does not measure '{}'; its metrics are {}", experiment.text.name, metric,
                           fmt::join(known, ", ")));
}

struct Request {
  std::string results, command, interpreter, experiment, input;
  Index nq, nk, d, dv, heads;
  bool causal, single;
  std::uint64_t seed;
};

Cell cell_of(const Request& asked, const std::string& method) {
  Cell cell{.experiment = Params("experiments", asked.experiment),
            .method = Params("methods", method),
            .input = Params("inputs", asked.input),
            .seed = asked.seed};
  if (cell.timing())
    throw Misuse(fmt::format("record: {} measures time, which attnbench does itself; give an experiment on values",
                             cell.experiment.name()));
  Shape& shape = cell.problem.shape;
  shape = {.nq = asked.nq, .nk = asked.nk, .d = asked.d, .dv = asked.dv};
  shape.mask = {.causal = asked.causal, .offset = asked.causal ? asked.nk - asked.nq : 0};
  shape.precision = asked.single ? Precision::f32 : Precision::f64;
  cell.problem.heads = asked.heads;
  return cell;
}

// measured: by method, its replicates. Everything is read and checked before the file is opened.
void record(const Request& asked, const std::vector<std::pair<std::string, py::list>>& measured) {
  struct Row {
    CellRow cell;
    Given given;
    std::vector<Measurement> measurements;
  };
  std::vector<Row> rows;
  for (const auto& [method, replicates] : measured) {
    const Cell cell = cell_of(asked, method);
    const auto& experiment = find<ExperimentEntry>(cell.experiment.name());
    for (const py::handle& replicate : replicates) {
      Row row{row_of(cell, false), Given(replicate), {}};
      for (const auto& [metric, values] : row.given.values)
        row.measurements.push_back(measurement_of(experiment, metric, values));
      rows.push_back(std::move(row));
    }
  }
  Store store(asked.results);
  const auto run = store.begin_run(asked.command, environment_json(asked.interpreter));
  for (const Row& row : rows)
    store.record(run, row.cell, row.given.replicate, {ending_kind(row.given.ending), row.given.reason},
                 row.given.seconds, row.measurements);
  const Figure figure = figure_of_run(parse_spec(asked.experiment).name);
  store.put_figure(recipe_of_runs, figure.name, 0, figure.json);
}

}  // namespace

void add_recording(py::module_& module) {
  module.def("record", [](const std::string& results, const std::string& command, const std::string& interpreter,
                          const std::string& experiment, const std::string& input, const std::array<Index, 5>& sizes,
                          bool causal, bool single, std::uint64_t seed,
                          const std::vector<std::pair<std::string, py::list>>& measured) {
    const auto& [nq, nk, d, dv, heads] = sizes;
    record({results, command, interpreter, experiment, input, nq, nk, d, dv, heads, causal, single, seed}, measured);
  });
}

}  // namespace attnbench
