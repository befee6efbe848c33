// A class with measure(self, applied) becomes an experiment.
#include "harness/python/arrays.hpp"
#include "harness/python/calls.hpp"
#include "harness/python/entries.hpp"

namespace attnbench {

namespace py = pybind11;

namespace {

// Python gets copies: what a class keeps of them cannot be written over.
void measure(const Declared& declared, bool matrices, const Task& task, Recorder& record) {
  const Task::Applied applied = matrices ? task.applied() : task.applied_without_matrix();
  const auto exact = task.exact.get(task.cell, task.replicate);
  const Matrix<double>* exact_attention = matrices ? &exact->attention() : nullptr;
  in_python(declared.file, [&] {
    py::dict arrays;
    const auto give = [&](const char* name, const In<double>& X) { arrays[name] = copied<double>(X); };
    give("q", exact->head.Q);
    give("k", exact->head.K);
    give("v", exact->head.V);
    give("output", applied.output);
    give("exact_output", exact->output);
    if (matrices) {
      give("attention", applied.attention);
      give("exact_attention", *exact_attention);
    }
    const py::object measured =
        py::handle(declared.object)
            .attr("measure")(py::reinterpret_steal<py::dict>(declared.values(task.cell.experiment)), arrays,
                             py::reinterpret_steal<py::tuple>(Declared::fields(task.cell.problem.shape)),
                             task.cell.method.spec(), task.cell.input.spec(), task.cell.seed, task.replicate);
    for (const py::handle one : measured) {
      const py::tuple metric = py::reinterpret_borrow<py::tuple>(one);
      const auto name = metric[0].cast<std::string>(), unit = metric[1].cast<std::string>();
      const auto numbers = py::array_t<double, py::array::c_style>::ensure(metric[2]);
      if (!numbers) throw py::error_already_set();
      if (numbers.ndim() == 0) {
        record.scalar(name, unit, *numbers.data());
        continue;
      }
      const std::vector<Index> shape(numbers.shape(), numbers.shape() + numbers.ndim());
      record.array(name, unit, shape, {numbers.data(), numbers.data() + numbers.size()});
    }
  });
}

}  // namespace

ExperimentEntry experiment_entry(const DeclaredClass& declared, std::vector<Metric> metrics, bool matrices) {
  const Metric& first = metrics.front();
  const Headline headline{.metric = first.name, .label = first.text.empty() ? first.name : first.text};
  return {
      .text = declared->text,
      .parameters = declared->parameters,
      .metrics = std::move(metrics),
      .headline = headline,
      // Two matrices, and the copies that Python gets.
      .bytes = [matrices](const Cell& cell) { return matrices ? 4 * matrix_bytes(cell) : 0.0; },
      .run = [declared, matrices](const Task& task, Recorder& record) { measure(*declared, matrices, task, record); }};
}

}  // namespace attnbench
