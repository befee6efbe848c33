// How far a method's attention matrix and output are from the exact ones. methods.md I.
// The matrix is read off the timed path (attend with V = I). The uniform null belongs into every comparison.
#include <cmath>
#include <limits>

#include "harness/measures/attention_matrix.hpp"
#include "harness/measures/divergence.hpp"
#include "harness/runner/experiment.hpp"
#include "harness/statistics/moments.hpp"

namespace attnbench {
namespace {

std::span<const double> row(const Matrix<double>& A, Index i) {
  return {A.data() + i * A.cols(), static_cast<size_t>(A.cols())};
}

// Both directions over the rows: the mean of the finite ones, and how many are infinite or undefined.
void record_divergence(const Matrix<double>& from, const Matrix<double>& to, const std::string& name,
                       Recorder& record) {
  Moments finite;
  double infinite = 0, undefined = 0;
  for (Index i = 0; i < from.rows(); ++i) {
    const auto divergence = kl_divergence(row(from, i), row(to, i));
    if (!divergence)
      ++undefined;
    else if (std::isinf(*divergence))
      ++infinite;
    else
      finite.add(*divergence);
  }
  const auto rows = static_cast<double>(from.rows());
  if (finite.count > 0) record.scalar(name, "nat", finite.mean);
  record.scalar(name + "_infinite", "1", infinite / rows);
  record.scalar(name + "_undefined", "1", undefined / rows);
}

// The share of rows whose normaliser sum_j K_ij over visible keys is not positive: such a row means nothing.
void record_normalisers(const Task& task, const Exact& exact, Recorder& record) {
  const auto method = task.method<double>(0, task.replicate);
  if (!method->kernel()) return;
  const Index nq = exact.head.Q.rows(), nk = exact.head.K.rows();
  Matrix<double> block(nq, nk);
  std::vector<double> log_rows(static_cast<size_t>(nq)), log_columns(static_cast<size_t>(nk));
  method->kernel()->kernel(exact.head.view(), task.context, block, log_rows, log_columns);
  const Eigen::Map<const Eigen::Array<double, 1, Eigen::Dynamic>> columns(log_columns.data(), nk);
  const auto& mask = task.cell.problem.shape.mask;
  double bad = 0;
  for (Index i = 0; i < nq; ++i) {
    const Index seen = mask.visible(i, nk);
    if (seen == 0) continue;
    const double largest = columns.head(seen).maxCoeff();
    const double sum = (block.row(i).head(seen).array() * (columns.head(seen) - largest).exp()).sum();
    // A positive map's sum may underflow to zero here; only a map of any sign can be truly non-positive.
    if (sum < 0 || (sum == 0 && block.row(i).head(seen).minCoeff() < 0)) ++bad;
  }
  record.scalar("fraction_nonpositive_normalisers", "1", bad / static_cast<double>(nq));
}

void measure(const Task& task, Recorder& record) {
  const auto exact = task.exact.get(task.cell, task.replicate);
  const auto [A, output] = task.applied();
  const Matrix<double>& truth = exact->attention;
  record.scalar("relative_frobenius", "1", (A - truth).norm() / truth.norm());
  record.scalar("relative_output_error", "1", (output - exact->output).norm() / exact->output.norm());
  record.scalar("output_mse", "1", (output - exact->output).squaredNorm() / static_cast<double>(output.size()));
  Moments l1;
  std::vector<double> rows;
  for (Index i = 0; i < A.rows(); ++i) {
    rows.push_back(l1_distance(row(A, i), row(truth, i)));
    l1.add(rows.back());
  }
  record.scalar("row_l1", "1", l1.mean);
  record.array("row_l1_rows", "1", {A.rows()}, std::move(rows));
  record_divergence(truth, A, "kl_exact_to_estimate", record);
  record_divergence(A, truth, "kl_estimate_to_exact", record);
  record.scalar("fraction_negative", "1", static_cast<double>((A.array() < 0).count()) / static_cast<double>(A.size()));
  record_normalisers(task, *exact, record);
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "attention-error",
             .summary = "error of the attention matrix and of the output against exact softmax",
             .formula = "|A' - A|_F / |A|_F, |A'V - AV|_F / |AV|_F, row L1, KL both ways",
             .reference = "Choromanski et al. 2020, arXiv:2009.14794, Fig. 4, for the output's MSE",
             .cost = "O(n^2) memory; the exact matrix once an input"},
    .parameters = {},
    .metrics = {{"relative_frobenius", "1", "|A' - A|_F / |A|_F"},
                {"relative_output_error", "1", "|A'V - AV|_F / |AV|_F"},
                {"output_mse", "1", "mean squared error of the entries of the output"},
                {"row_l1", "1", "mean over rows of sum_j |A'_ij - A_ij|; at most 2 for stochastic rows"},
                {"row_l1_rows", "1", "the same for each row"},
                {"kl_exact_to_estimate", "nat", "mean KL(A || A') over the rows where it is finite"},
                {"kl_exact_to_estimate_infinite", "1", "share of rows where it is infinite"},
                {"kl_exact_to_estimate_undefined", "1", "share of rows with negative entries"},
                {"kl_estimate_to_exact", "nat", "mean KL(A' || A) over the rows where it is finite"},
                {"kl_estimate_to_exact_infinite", "1", "share of rows where it is infinite"},
                {"kl_estimate_to_exact_undefined", "1", "share of rows with negative entries"},
                {"fraction_negative", "1", "share of entries of A' below zero"},
                {"fraction_nonpositive_normalisers", "1", "share of rows whose weights do not sum to more than zero"}},
    .headline = {.metric = "relative_output_error", .label = "|A'V - AV| / |AV|  (Frobenius)"},
    .matrices = 4,
    .run = measure,
});

}  // namespace
}  // namespace attnbench
