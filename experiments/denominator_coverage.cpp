// How often the estimated denominator of a sampled row misses a promise: |D^ / D - 1| > eps. methods.md S. Rows whose
// keys are all exact miss nothing and are left out, and so are rows that see no key. Everything is in double.
//
// A replicate is one input and one draw. Its rows are evenly spaced; they have draws of their own, or share those of
// the method, so that intervals are over replicates.
#include <cmath>

#include "harness/core/estimates.hpp"
#include "harness/experiment/experiment.hpp"
#include "harness/linalg/products.hpp"
#include "harness/statistics/moments.hpp"

namespace attnbench::denominator_coverage_experiment {
namespace {

// log sum_j exp(q.k_j) over the first `seen` keys.
double log_sum(Context& context, const In<double>& query, const In<double>& K, Index seen) {
  Matrix<double> logits(1, seen);
  multiply_transposed<double>(context, query, row_block(K, 0, seen), logits);
  const double largest = logits.maxCoeff();
  return largest + std::log((logits.array() - largest).exp().sum());
}

void measure(const Task& task, Recorder& record) {
  const auto head = draw_cell_head(task.cell, task.replicate, 0, Purpose::measured);
  const Mask mask = task.cell.problem.shape.mask;
  const Index nq = head.Q.rows(), nk = head.K.rows(), rows = std::min(task.cell.experiment.integer("rows"), nq);
  const double eps = task.cell.experiment.real("eps");
  const auto method = task.method<double>(0, task.replicate);
  const auto* sampled = sampled_rows(*method);
  if (!sampled) throw Skip(task.cell.method.spec() + " samples no keys: it estimates no denominator");
  Moments missed, draws, ratios;
  Matrix<double> numerator(1, head.V.cols());
  for (Index r = 0; r < rows; ++r) {
    const Index i = (2 * r + 1) * nq / (2 * rows);  // the middle of each of the parts that the rows stand for
    const Index seen = mask.visible(i, nk);
    const SamplingLaw law = sampled->law(head.view(), mask, i);
    if (!law.draws_keys()) continue;
    double denominator = 0, log_scale = 0;
    sampled->sums(head.view(), mask, i, task.context, numerator, std::span(&denominator, 1), std::span(&log_scale, 1));
    const double log_D = log_sum(task.context, row_block(head.Q, i, 1), head.K, seen);
    const double ratio = denominator * std::exp(log_scale - log_D);
    if (!std::isfinite(ratio)) throw NumericallyInvalid("an estimated denominator is NaN or infinite");
    missed.add(std::abs(ratio - 1) > eps ? 1 : 0);
    ratios.add(ratio);
    draws.add(static_cast<double>(law.samples));
  }
  if (missed.count == 0) throw Skip("no row draws a key: all are exact");
  record.scalar("missed", "1", missed.mean);
  record.scalar("mean_ratio", "1", ratios.mean);
  record.scalar("draws", "keys", draws.mean);
  record.scalar("drawing_rows", "1", missed.count / static_cast<double>(rows));
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "denominator-coverage",
             .summary = "how often the estimated denominator of a sampled row is off by more than eps",
             .formula = "share of rows with |D^ / D - 1| > eps, among rows that draw keys",
             .reference = "Desai et al. 2025, arXiv:2510.05688",
             .cost = "rows x one row of the method, and its law"},
    .parameters = {Parameter::real("eps", 0.1, "relative error of the denominator that counts as a miss", 1e-6, 0.999),
                   Parameter::integer("rows", 64, "rows, evenly spaced", 1, 4096)},
    .metrics = {{"missed", "1", "share of drawing rows whose denominator is off by more than eps"},
                {"mean_ratio", "1", "mean of D^ / D over these rows: 1 where the estimate has no bias"},
                {"draws", "keys", "mean number of draws of these rows"},
                {"drawing_rows", "1", "share of the chosen rows that draw keys"}},
    .headline = {.metric = "missed", .label = "P(|D^/D - 1| > eps)"},
    .work =
        [](const Cell& cell) {
          Shape shape = cell.problem.shape;
          shape.nq = cell.experiment.integer("rows");
          Work work = find<MethodEntry>(cell.method.name()).cost(cell.method, shape);
          return Work{.flops = 2 * work.flops, .exps = 2 * work.exps};
        },
    .run = measure,
});

}  // namespace
}  // namespace attnbench::denominator_coverage_experiment
