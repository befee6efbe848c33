// Errors of logits that a method estimates, and of the weights that follow from them. methods.md R and S. A replicate
// is one draw of the method on one head. An estimate l~ without bias, E l~ = l, gives weights with one: E exp(l~) =
// exp(l) E exp(l~ - l), which is exp(l + Var l~ / 2) if errors are normal. Everything is in double.
#include <algorithm>
#include <cmath>

#include "harness/core/estimates.hpp"
#include "harness/experiment/experiment.hpp"
#include "harness/linalg/products.hpp"
#include "harness/statistics/moments.hpp"

namespace attnbench::logit_error_experiment {
namespace {

void measure(const Task& task, Recorder& record) {
  const auto head = draw_cell_head(task.cell, task.replicate, 0, Purpose::measured);
  const Mask mask = task.cell.problem.shape.mask;
  const auto method = task.method<double>(0, task.replicate);
  const auto* estimated = estimated_logits(*method);
  if (!estimated) throw Skip(task.cell.method.spec() + " estimates no logits");
  Matrix<double> logits(head.Q.rows(), head.K.rows()), estimates(head.Q.rows(), head.K.rows());
  multiply_transposed<double>(task.context, head.Q, head.K, logits);
  estimated->logits(head.view(), task.context, estimates);
  Moments errors, ratios;
  double along = 0, squares = 0;
  for (Index i = 0; i < logits.rows(); ++i)
    for (Index j = 0; j < mask.visible(i, logits.cols()); ++j) {
      const double error = estimates(i, j) - logits(i, j);
      errors.add(error);
      ratios.add(std::exp(error));
      along += estimates(i, j) * logits(i, j);
      squares += logits(i, j) * logits(i, j);
    }
  if (errors.count == 0) throw Skip("no row sees a key");
  record.scalar("logit_bias", "1", errors.mean);
  record.scalar("logit_deviation", "1", std::sqrt(errors.mean * errors.mean + errors.m2 / errors.count));
  if (squares > 0) record.scalar("logit_slope", "1", along / squares);
  record.scalar("weight_ratio", "1", ratios.mean);
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "logit-error",
             .summary = "errors of estimated logits, and of the weights that follow from them",
             .formula = "l~ - l and exp(l~ - l), l = q.k, over all pairs that the mask allows",
             .reference = "Zandieh et al. 2024, arXiv:2406.03482, Lemma 3.2, for the logits",
             .cost = "O(n^2 d) time, O(n^2) memory"},
    .parameters = {},
    .metrics =
        {{"logit_slope",
          "1",
          "sum of l~ l over sum of l^2: 1 without bias",
          {},
          "sum of estimate times logit / sum of logit squared"},
         {"logit_bias", "1", "mean of l~ - l"},
         {"logit_deviation", "1", "square root of the mean of (l~ - l)^2"},
         {"weight_ratio", "1", "mean of exp(l~ - l): 1 for weights without bias", {}, "mean of exp(estimate - logit)"}},
    .headline = {.metric = "logit_deviation", .label = "error of a logit (root mean square)"},
    .bytes = [](const Cell& cell) { return 2 * matrix_bytes(cell); },
    .run = measure,
});

}  // namespace
}  // namespace attnbench::logit_error_experiment
