// How far a method is from a softmax of tilted logits, L = softmax(a q.k + b |k|^2): the limit of some estimates,
// instead of softmax(q.k). methods.md A11, D6:
//   the Performer without the norm factor of keys     a = 1, b = 1/2
//   its random vectors read as Gaussian codes         a = 1/2, b = -1/4;  with a softmax over the codes a = 1/2, b = 0
#include <cmath>

#include "harness/experiment/experiment.hpp"
#include "harness/linalg/products.hpp"

namespace attnbench::tilted_softmax_experiment {
namespace {

Matrix<double> tilted_softmax(const Task& task, const HeadData<double>& head) {
  const auto& shape = task.cell.problem.shape;
  const double a = task.cell.experiment.real("logits"), b = task.cell.experiment.real("key_norms");
  Matrix<double> L(shape.nq, shape.nk);
  multiply_transposed<double>(task.context, head.Q, head.K, L);
  L *= a;
  L.rowwise() += b * head.K.rowwise().squaredNorm().transpose();
  for (Index i = 0; i < shape.nq; ++i) {
    const Index seen = shape.mask.visible(i, shape.nk);
    L.row(i).tail(shape.nk - seen).setZero();
    if (seen == 0) continue;
    auto row = L.row(i).head(seen).array();
    row = (row - row.maxCoeff()).exp();
    row /= row.sum();
  }
  return L;
}

void measure(const Task& task, Recorder& record) {
  const auto exact = task.exact.get(task.cell, task.replicate);
  const Matrix<double>& softmax = exact->attention();
  const Matrix<double> L = tilted_softmax(task, exact->head), A = task.applied().attention;
  record.scalar("difference_to_tilted", "1", (A - L).norm() / L.norm());
  record.scalar("difference_to_softmax", "1", (A - softmax).norm() / softmax.norm());
  record.scalar("tilted_to_softmax", "1", (L - softmax).norm() / softmax.norm());
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "tilted-softmax",
             .summary = "how far a method is from softmax(a q.k + b |k|^2), and that from softmax",
             .formula = "|A' - L|_F / |L|_F, |A' - A|_F / |A|_F, |L - A|_F / |A|_F,  L = softmax(a q.k + b |k|^2)",
             .reference = "none: limits of estimates that do not tend to softmax",
             .cost = "O(n^2) memory; the exact matrix once an input"},
    .parameters = {Parameter::real("logits", 1, "a", -1e6, 1e6), Parameter::real("key_norms", 0, "b", -1e6, 1e6)},
    .metrics = {{"difference_to_tilted", "1", "|A' - L|_F / |L|_F", {}, "|A' - L| / |L|  (Frobenius)", "log10"},
                {"difference_to_softmax",
                 "1",
                 "|A' - A|_F / |A|_F, where A is softmax's",
                 {},
                 "|A' - A| / |A|  (Frobenius)",
                 "log10"},
                {"tilted_to_softmax",
                 "1",
                 "|L - A|_F / |A|_F, the same for every method",
                 {},
                 "|softmax(q.k + |k|^2/2) - A| / |A|",
                 "log10"}},
    .headline = {.metric = "difference_to_tilted", .label = "|A' - L| / |L|  (Frobenius)"},
    .bytes = [](const Cell& cell) { return 5 * matrix_bytes(cell); },
    .run = measure,
});

}  // namespace
}  // namespace attnbench::tilted_softmax_experiment
