// How much rounding error the gradients of a training step have: gradients in float against gradients in double, of
// the same method, head and loss.
#include <cmath>

#include "experiments/loss_gradients.hpp"

namespace attnbench::gradient_rounding_experiment {
namespace {

void refuse_double(const Cell& cell) {
  if (cell.problem.shape.precision == Precision::f64)
    throw Misuse("gradient-rounding in f64 would compare double with itself; expected --precision f32");
}

void measure(const Task& task, Recorder& record) {
  const HeadData<float> head = draw_cell_head(task.cell, task.replicate, 0, Purpose::measured).cast<float>();
  const HeadData<double> same = head.cast<double>();
  const Matrix<float> G = loss_weights(task, 0).cast<float>();
  const auto rounded = loss_gradients(task, *task.method<float>(0, task.replicate), head, G).cast<double>();
  const auto exact =
      loss_gradients(task, *task.method<double>(0, task.replicate), same, Matrix<double>(G.cast<double>()));
  const double off = (rounded.Q - exact.Q).squaredNorm() + (rounded.K - exact.K).squaredNorm() +
                     (rounded.V - exact.V).squaredNorm(),
               whole = exact.Q.squaredNorm() + exact.K.squaredNorm() + exact.V.squaredNorm();
  if (whole == 0) throw Skip(task.cell.method.spec() + ": all gradients are zero");
  record.scalar("gradient_error", "1", std::sqrt(off / whole));
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "gradient-rounding",
             .summary = "relative error of the gradients that a method computes in float",
             .formula = "|grad_float - grad_double|_F / |grad_double|_F, grad = d <G, out> / d (Q, K, V), G normal",
             .reference = "none: what float costs",
             .cost = "a forward and a backward pass in float and in double"},
    .parameters = {},
    .metrics = {{"gradient_error", "1",
                 "|gradients - gradients in double|_F / |gradients in double|_F, of Q, K and V together", Better::less,
                 "relative error of float gradients", "log10"}},
    .headline = {.metric = "gradient_error", .label = "relative error of float gradients"},
    .check = refuse_double,
    .run = measure,
});

}  // namespace
}  // namespace attnbench::gradient_rounding_experiment
