// The share of the gradients of queries and keys that is exactly zero: entries that a map like ReLU does not train.
// Only tokens with a gradient count. If a row sees a single value, such as the first row under a causal mask, its query
// has no effect under any map, except for rounding.
#include "experiments/loss_gradients.hpp"

namespace attnbench::zero_gradients_experiment {
namespace {

struct Count {
  double entries = 0, zero = 0, negative = 0;

  // X and the gradient with respect to it, one token per row.
  void add(const Matrix<double>& X, const Matrix<double>& gradient) {
    constexpr double rounding = 1e-12;
    const double least = rounding * gradient.cwiseAbs().maxCoeff();
    for (Index i = 0; i < X.rows(); ++i) {
      if (gradient.row(i).cwiseAbs().maxCoeff() <= least) continue;
      entries += static_cast<double>(X.cols());
      zero += static_cast<double>((gradient.row(i).array() == 0).count());
      negative += static_cast<double>((X.row(i).array() < 0).count());
    }
  }
};

void measure(const Task& task, Recorder& record) {
  const auto method = task.method<double>(0, task.replicate);
  const auto head = draw_cell_head(task.cell, task.replicate, 0, Purpose::measured);
  const auto gradients = loss_gradients(task, *method, head, loss_weights(task, 0));

  Count count;
  count.add(head.Q, gradients.Q);
  count.add(head.K, gradients.K);
  if (count.entries == 0) throw Skip(task.cell.method.spec() + ": no query and no key has a gradient");
  record.scalar("zero_gradients", "1", count.zero / count.entries);
  record.scalar("negative_entries", "1", count.negative / count.entries);
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "zero-gradients",
             .summary = "share of the gradients of queries and keys that is exactly zero",
             .formula =
                 "#{c: d loss / d x_ic = 0} / #{c}, x_i each query and key with a gradient; loss = <G, out>, G normal",
             .reference = "Katharopoulos et al. 2020, arXiv:2006.16236, section 3.2.1",
             .cost = "one forward and one backward pass"},
    .parameters = {},
    .metrics = {{"zero_gradients",
                 "1",
                 "share of the gradient's entries that are 0, over queries and keys with a gradient",
                 {},
                 "share of zero gradients"},
                {"negative_entries", "1", "share of the entries below 0, of the same queries and keys"}},
    .headline = {.metric = "zero_gradients", .label = "share of zero gradients"},
    .run = measure,
});

}  // namespace
}  // namespace attnbench::zero_gradients_experiment
