// Errors of rows from sampled keys over many draws, beside the closed forms of the law that the method declares.
// methods.md S. Everything is in double and in units of the exact denominator D.
//
// Tensors that the law takes as given, such as those of a hash, are the same in all draws of a row. Where the draws
// depend on each other, errors have no closed forms and none are recorded.
//
// A replicate is one input. Each of its chosen rows is a head of its own with one query, so that a draw takes the
// numbers of one row. Draws of different rows and replicates are independent.
#include <cmath>

#include "harness/experiment/experiment.hpp"
#include "harness/linalg/products.hpp"
#include "harness/statistics/moments.hpp"
#include "harness/theory/sampling_law.hpp"

namespace attnbench::sampling_error_experiment {
namespace {

// Draw t belongs to batch t mod 32 for any number of threads.
constexpr Index batches = 32;

// Sums over the draws of one row.
struct RowMoments {
  Moments denominator, denominator_error, numerator_error, row_error;
  Eigen::RowVectorXd row_sum;  // of o^ - o

  void merge(const RowMoments& other) {
    denominator.merge(other.denominator);
    denominator_error.merge(other.denominator_error);
    numerator_error.merge(other.numerator_error);
    row_error.merge(other.row_error);
    row_sum += other.row_sum;
  }
};

// One row of the head as a problem with one query.
struct RowProblem {
  RowProblem(const Task& task, const HeadData<double>& head, Index row)
      : part(head.view(), row, 1, 0, head.K.rows()), cell(task.cell) {
    cell.problem.shape.nq = 1;
    cell.problem.shape.mask.offset += row;
  }
  Index seen() const { return cell.problem.shape.mask.visible(0, cell.problem.shape.nk); }

  HeadPart<double> part;
  Cell cell;
};

// log sum_j exp(q.k_j) over the keys that the row sees.
double log_sum(Context& context, const RowProblem& one) {
  const auto head = one.part.view();
  Matrix<double> logits(1, one.seen());
  multiply_transposed<double>(context, head.Q, row_block(head.K, 0, one.seen()), logits);
  const double largest = logits.maxCoeff();
  return largest + std::log((logits.array() - largest).exp().sum());
}

RowMoments sample(const Task& task, const RowProblem& one, const SampledRow& theory, const MethodDraws& draw_of,
                  Index first_draw) {
  const Index draws = task.cell.experiment.integer("draws"), dv = one.cell.problem.shape.dv;
  const auto vector = [dv](const std::vector<double>& numbers) { return Eigen::RowVectorXd::Map(numbers.data(), dv); };
  const Eigen::RowVectorXd numerator_mean = vector(theory.numerator_mean), output = vector(theory.output);
  const double log_D = log_sum(task.context, one);
  std::vector<RowMoments> parts(static_cast<size_t>(batches), RowMoments{.row_sum = Eigen::RowVectorXd::Zero(dv)});
  task.context.for_blocks(batches, 1, [&](Context& single, Index b, Index) {
    RowMoments& part = parts[static_cast<size_t>(b)];
    Matrix<double> numerator(1, dv);
    for (Index t = b; t < draws; t += batches) {
      double denominator = 0, log_scale = 0;
      const auto method = draw_of(first_draw + t);
      sampled_rows(*method)->sums(one.part.view(), one.cell.problem.shape.mask, 0, single, numerator,
                                  std::span(&denominator, 1), std::span(&log_scale, 1));
      const Eigen::RowVectorXd deviation = numerator.row(0) / denominator - output;
      const double factor = std::exp(log_scale - log_D);
      if (!std::isfinite(factor * denominator) || !deviation.allFinite())
        throw NumericallyInvalid("a sampled row is NaN or infinite");
      part.denominator.add(factor * denominator);
      part.denominator_error.add(std::pow(factor * denominator - theory.denominator_mean, 2));
      part.numerator_error.add((factor * numerator.row(0) - numerator_mean).squaredNorm());
      part.row_error.add(deviation.squaredNorm());
      part.row_sum += deviation;
    }
  });
  RowMoments all{.row_sum = Eigen::RowVectorXd::Zero(dv)};
  for (const RowMoments& part : parts) all.merge(part);
  return all;
}

void measure(const Task& task, Recorder& record) {
  const auto head = draw_cell_head(task.cell, task.replicate, 0, Purpose::measured);
  const Index nq = head.Q.rows(), rows = std::min(task.cell.experiment.integer("rows"), nq);
  const auto dv = static_cast<double>(head.V.cols());
  Moments bias, denominator, numerator, row, row_bias, denominator_theory, numerator_theory, row_theory;
  for (Index r = 0; r < rows; ++r) {
    const Index i = (2 * r + 1) * nq / (2 * rows);  // the middle of each of the parts that the rows stand for
    const RowProblem one(task, head, i);
    if (one.seen() == 0) continue;
    MethodDraws draw(one.cell, task.replicate, 0);
    const Index first_draw = task.replicate * (Index{1} << 32) + r * (Index{1} << 24);
    const auto method = draw(first_draw);
    const auto* sampled = sampled_rows(*method);
    if (!sampled) throw Skip(task.cell.method.spec() + " samples no keys: it declares no law of its draws");
    draw.hold(given_state(*method, *sampled));
    const auto view = one.part.view();
    const SampledRow theory = sampled_row(task.context, sampled->law(view, one.cell.problem.shape.mask, 0), view.Q,
                                          row_block(view.K, 0, one.seen()), row_block(view.V, 0, one.seen()));
    const RowMoments seen = sample(task, one, theory, draw, first_draw);
    const double draws = seen.row_error.count;
    bias.add(seen.denominator.mean - 1);
    denominator.add(seen.denominator_error.mean);
    numerator.add(seen.numerator_error.mean / dv);
    row.add(seen.row_error.mean / dv);
    // |mean|^2 is too large by the variance of the mean.
    const double squared_mean = (seen.row_sum / draws).squaredNorm();
    row_bias.add((squared_mean - (seen.row_error.mean - squared_mean) / (draws - 1)) / dv);
    if (!theory.variances_known) continue;
    denominator_theory.add(theory.denominator_variance);
    numerator_theory.add(theory.numerator_variance / dv);
    row_theory.add(theory.row_squared_error / dv);
  }
  if (row.count == 0) throw Skip("none of the chosen rows sees a key");
  record.scalar("denominator_bias", "1", bias.mean);
  record.scalar("denominator_mse", "1", denominator.mean);
  record.scalar("numerator_mse", "1", numerator.mean);
  record.scalar("row_mse", "1", row.mean);
  record.scalar("row_bias2", "1", row_bias.mean);
  if (row_theory.count < row.count) return;  // some row has no closed forms
  record.scalar("denominator_mse_theory", "1", denominator_theory.mean);
  record.scalar("numerator_mse_theory", "1", numerator_theory.mean);
  record.scalar("row_mse_theory", "1", row_theory.mean);
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "sampling-error",
             .summary = "errors of rows from sampled keys over draws, with the closed forms of the law of the draws",
             .formula = "E |D^ - D|^2 / D^2, E |N^ - N|^2 / D^2 and E |N^ / D^ - o|^2 over draws, for some rows",
             .reference = "Lee et al. 2026, arXiv:2605.01910",
             .cost = "rows x draws x one row of the method"},
    .parameters = {Parameter::integer("draws", 1024, "draws of each row in each replicate", batches, 1 << 20),
                   Parameter::integer("rows", 4, "rows, evenly spaced", 1, 128)},
    .metrics = {{"denominator_bias", "1", "mean over rows of E D^ / D - 1"},
                {"denominator_mse", "1", "mean over rows of E |D^ - E D^|^2 / D^2"},
                {"denominator_mse_theory", "1", "its closed form"},
                {"numerator_mse", "1", "mean over rows and channels of E |N^ - E N^|^2 / D^2"},
                {"numerator_mse_theory", "1", "its closed form"},
                {"row_mse", "1", "mean over rows and channels of E |o^ - o|^2", {}, "E |o' - o|^2 / dv", "log10"},
                {"row_mse_theory", "1", "its closed form: exact where D^ does not vary, else to first order in 1/s"},
                {"row_bias2", "1",
                 "mean over rows and channels of |E o^ - o|^2, less what the number of draws adds to it"}},
    .headline = {.metric = "row_mse", .label = "E |o^ - o|^2 / dv", .theory = "row_mse_theory"},
    .work =
        [](const Cell& cell) {
          Shape shape = cell.problem.shape;
          shape.nq = cell.experiment.integer("rows");
          Work work = find<MethodEntry>(cell.method.name()).cost(cell.method, shape);
          const auto draws = static_cast<double>(cell.experiment.integer("draws"));
          return Work{.flops = draws * work.flops, .exps = draws * work.exps};
        },
    .run = measure,
});

}  // namespace
}  // namespace attnbench::sampling_error_experiment
