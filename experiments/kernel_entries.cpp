// The greatest error of an entry of exp(q.k), before normalisation: the quantity that uniform bounds limit (Performer,
// Theorem 4). A bound for each pair, summed over pairs, would grow with their number; a uniform bound does not.
#include <cmath>

#include "harness/errors/error.hpp"
#include "harness/experiment/experiment.hpp"

namespace attnbench::kernel_entries_experiment {
namespace {

constexpr Index rows_at_once = 256;

// max_ij |K'_ij - exp(q_i.k_j)| over the queries [first, first + count) and the keys that they see.
double greatest_error(const Task& task, const Kernel<double>& kernel, const HeadData<double>& head, Index first,
                      Index count) {
  const Index keys = head.K.rows();
  const Matrix<double> queries = head.Q.middleRows(first, count);
  Matrix<double> block(count, keys);
  std::vector<double> log_rows(static_cast<size_t>(count)), log_columns(static_cast<size_t>(keys));
  kernel.kernel(HeadPart<double>(head.view(), first, count, 0, keys).view(), task.context, block, log_rows,
                log_columns);
  const Matrix<double> logits = queries * head.K.transpose();
  const auto& mask = task.cell.problem.shape.mask;
  double greatest = 0;
  for (Index i = 0; i < count; ++i)
    for (Index j = 0; j < mask.visible(first + i, keys); ++j) {
      const double scale = std::exp(log_rows[static_cast<size_t>(i)] + log_columns[static_cast<size_t>(j)]);
      const double error = std::abs(block(i, j) * scale - std::exp(logits(i, j)));
      if (!std::isfinite(error)) throw NumericallyInvalid("an entry of the kernel estimate is not finite");
      greatest = std::max(greatest, error);
    }
  return greatest;
}

void measure(const Task& task, Recorder& record) {
  const auto method = task.method<double>(0, task.replicate);
  if (!method->kernel()) throw Skip(task.cell.method.spec() + " estimates no kernel");
  const auto head = draw_cell_head(task.cell, task.replicate, 0, Purpose::measured);
  double greatest = 0;
  for (Index first = 0; first < head.Q.rows(); first += rows_at_once)
    greatest = std::max(
        greatest, greatest_error(task, *method->kernel(), head, first, std::min(rows_at_once, head.Q.rows() - first)));
  record.scalar("greatest_error", "1", greatest);
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "kernel-entries",
             .summary = "the greatest error of the entries of the kernel estimate",
             .formula = "max_ij |K'_ij - exp(q_i.k_j)| over the pairs that the mask lets see each other",
             .reference = "Choromanski et al. 2020, arXiv:2009.14794, Theorem 4",
             .cost = "O(n^2 F) time, O(n) memory"},
    .parameters = {},
    .metrics = {{"greatest_error", "1", "max |K'_ij - exp(q_i.k_j)|", {}, "max |K'_ij - exp(q_i.k_j)|", "log10"}},
    .headline = {.metric = "greatest_error", .label = "max |K'_ij - exp(q_i.k_j)|"},
    .run = measure,
});

}  // namespace
}  // namespace attnbench::kernel_entries_experiment
