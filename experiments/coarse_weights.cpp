// How much of the exact weights is left where a method replaces them by the weight of means: blocks or clusters of
// tokens that count as one. methods.md T. For pairs P with the coarse weight w and the exact weight W = sum over P of
// exp(q_i.k_j), Jensen's inequality says w <= W. Everything is in double.
#include <algorithm>
#include <cmath>

#include "harness/core/bounds.hpp"
#include "harness/experiment/experiment.hpp"
#include "harness/linalg/products.hpp"
#include "harness/statistics/moments.hpp"

namespace attnbench::coarse_weights_experiment {
namespace {

void measure(const Task& task, Recorder& record) {
  const auto exact = task.exact.get(task.cell, task.replicate);
  const HeadData<double>& head = exact->head;
  const Mask mask = task.cell.problem.shape.mask;
  const auto method = task.method<double>(0, task.replicate);
  const auto* coarse = coarse_weights(*method);
  if (!coarse) throw Skip(task.cell.method.spec() + " has no coarse weights");
  const auto all = coarse->coarse_weights(head.view(), mask, task.context);
  if (all.empty()) throw Skip(task.cell.method.spec() + " takes every pair of tokens exactly at this size");
  const Matrix<double>& A = exact->attention();
  Matrix<double> logits(head.Q.rows(), head.K.rows());
  multiply_transposed<double>(task.context, head.Q, head.K, logits);
  Moments log_ratio;
  double most = 0, share = 0, kept = 0, rows = 0;
  for (const CoarseWeight& part : all) {
    const auto block = logits(Eigen::seqN(part.first_row, part.rows), part.keys).array().eval();
    const double largest = block.maxCoeff(), log_exact = largest + std::log((block - largest).exp().sum());
    const double ratio = std::exp(part.log_weight - log_exact);
    const double of_pairs = A(Eigen::seqN(part.first_row, part.rows), part.keys).sum();
    log_ratio.add(part.log_weight - log_exact);
    most = std::max(most, ratio);
    share += of_pairs;
    kept += of_pairs * ratio;
  }
  for (Index i = 0; i < A.rows(); ++i) rows += mask.visible(i, A.cols()) > 0 ? 1 : 0;
  record.scalar("weight_ratio", "1", std::exp(log_ratio.mean));
  record.scalar("largest_ratio", "1", most);
  record.scalar("coarse_share", "1", share / rows);
  if (share > 0) record.scalar("kept_weight", "1", kept / share);
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "coarse-weights",
             .summary = "how much of the exact weights is left where means stand for tokens",
             .formula = "w / W over pairs of tokens P: w their coarse weight, W = sum over P of exp(q_i.k_j)",
             .reference = "none: Jensen's inequality",
             .cost = "O(n^2 d) time, O(n^2) memory"},
    .parameters = {},
    .metrics = {{"weight_ratio", "1", "geometric mean of w / W over all P", {}, "mean of exp(estimate - logit)"},
                {"largest_ratio", "1", "the largest w / W: at most 1"},
                {"kept_weight",
                 "1",
                 "mean of w / W, each P counted by its softmax weight",
                 {},
                 "coarse weight over exact weight",
                 "log10"},
                {"coarse_share", "1", "mean over rows of the softmax weight of pairs that have a coarse weight"}},
    .headline = {.metric = "kept_weight", .label = "coarse weight over exact weight"},
    .bytes = [](const Cell& cell) { return 4 * matrix_bytes(cell); },
    .run = measure,
});

}  // namespace
}  // namespace attnbench::coarse_weights_experiment
