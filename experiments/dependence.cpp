// Which inputs a method's output depends on: queries, keys and values are replaced, one at a time, by those of another
// head of the same input, and the outputs are compared. If the method does not read a tensor, no bit changes.
#include "harness/experiment/experiment.hpp"
#include "harness/measures/attention_matrix.hpp"

namespace attnbench::dependence_experiment {
namespace {

void measure(const Task& task, Recorder& record) {
  const Cell& cell = task.cell;
  if (!has_calibration(cell.input))
    throw Skip(cell.input.spec() + " has a single head; another one is needed to take queries, keys and values from");
  const auto head = draw_cell_head(cell, task.replicate, 0, Purpose::measured),
             other = draw_cell_head(cell, task.replicate, 0, Purpose::calibration);
  const auto method = task.method<double>(0, task.replicate);
  const auto output = [&](const Head<double>& given) {
    Matrix<double> out(given.Q.rows(), given.V.cols());
    method->attend(given, cell.problem.shape.mask, task.context, out);
    require_finite<double>(out, "output");
    return out;
  };
  const Matrix<double> whole = output(head.view());
  const auto change = [&](const Head<double>& given) { return (output(given) - whole).norm() / whole.norm(); };
  record.scalar("change_by_queries", "1", change({other.Q, head.K, head.V}));
  record.scalar("change_by_keys", "1", change({head.Q, other.K, head.V}));
  record.scalar("change_by_values", "1", change({head.Q, head.K, other.V}));
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "dependence",
             .summary = "how much the output changes with other queries, other keys, other values",
             .formula = "|out(Q', K, V) - out(Q, K, V)|_F / |out(Q, K, V)|_F, Q' of another head; K and V likewise",
             .reference = "none: a method that does not read its keys says so here",
             .cost = "four calls of the method"},
    .parameters = {},
    .metrics = {{"change_by_queries", "1", "|out(Q', K, V) - out|_F / |out|_F", {}, "change of the output / output"},
                {"change_by_keys", "1", "|out(Q, K', V) - out|_F / |out|_F", {}, "change of the output / output"},
                {"change_by_values", "1", "|out(Q, K, V') - out|_F / |out|_F", {}, "change of the output / output"}},
    .headline = {.metric = "change_by_keys", .label = "change of the output with other keys"},
    .run = measure,
});

}  // namespace
}  // namespace attnbench::dependence_experiment
