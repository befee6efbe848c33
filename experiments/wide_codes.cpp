// Attention to Gaussians around the keys instead of the keys themselves. methods.md D, source 001: a mixture of
// components N(c, s^2 I) instead of codes c has
//   int exp(q.w) N(w; c, s^2 I) dw = exp(q.c) exp(s^2 |q|^2 / 2).
// The second factor depends on the query only, so it cancels in the normaliser for any width s. Here a mean over
// samples replaces the integral, with separate samples for each key: the remaining difference is sampling noise.
#include "harness/experiment/experiment.hpp"
#include "harness/linalg/products.hpp"
#include "harness/measures/attention_matrix.hpp"

namespace attnbench::wide_codes_experiment {
namespace {

void refuse_what_is_not_exact(const Cell& cell) {
  if (cell.method.spec() != "softmax")
    throw Misuse("wide-codes with --method " + cell.method.spec() + ": expected --method softmax, which it widens");
}

// rownorm(mean over samples of exp(q_i.(k_j + width eps))), nq x nk, under the mask.
Matrix<double> widened(const Task& task, const HeadData<double>& head) {
  const double width = task.cell.experiment.real("width");
  const Index samples = task.cell.experiment.integer("samples"), nq = head.Q.rows(), nk = head.K.rows();
  Matrix<double> weights(nq, nk);
  multiply_transposed<double>(task.context, head.Q, head.K, weights);
  for (Index i = 0; i < nq; ++i) weights.row(i).array() = (weights.row(i).array() - weights.row(i).maxCoeff()).exp();
  Matrix<double> shifts(nq, samples);
  for (Index j = 0; j < nk; ++j) {
    Generator generator = Streams(task.cell.seed).stream("wide-codes", task.replicate, j);
    multiply_transposed<double>(task.context, head.Q, standard_normal(generator, samples, head.Q.cols()), shifts);
    weights.col(j).array() *= (width * shifts.array()).exp().rowwise().mean();
  }
  for (Index i = 0; i < nq; ++i) {
    const Index seen = task.cell.problem.shape.mask.visible(i, nk);
    weights.row(i).tail(nk - seen).setZero();
    weights.row(i) /= weights.row(i).sum();
  }
  return weights;
}

void measure(const Task& task, Recorder& record) {
  const auto head = draw_cell_head(task.cell, task.replicate, 0, Purpose::measured);
  const auto method = task.method<double>(0, task.replicate);
  const Matrix<double> A = attention_matrix(*method, head.view(), task.cell.problem.shape.mask, task.context);
  record.scalar("distance", "1", (widened(task, head) - A).norm() / A.norm());
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "wide-codes",
             .summary = "attention to Gaussians around the keys, sampled, against attention to the keys",
             .formula = "|A' - A| / |A|, A' = rownorm(mean over eps of exp(q.(k + width eps))), eps normal",
             .reference = "Su 2023, kexue.fm/archives/9862",
             .cost = "O(n^2 samples d) time"},
    .parameters = {Parameter::real("width", 0.5, "standard deviation of the Gaussians", 0, 100),
                   Parameter::integer("samples", 1024, "samples of each Gaussian", 1)},
    .metrics = {{"distance", "1", "|A' - A|_F / |A|_F", {}, "|A' - A| / |A|", "log10"}},
    .headline = {.metric = "distance", .label = "distance to attention to the keys"},
    .check = refuse_what_is_not_exact,
    .run = measure,
});

}  // namespace
}  // namespace attnbench::wide_codes_experiment
