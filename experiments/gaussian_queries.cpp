// Whether the weight that later queries give a key follows from the mean and the covariance of earlier queries, as it
// does if queries are normal: E exp(q.k) = exp(mu.k + k^T Sigma k / 2). Devoto, Jeblick and Jégou 2025,
// arXiv:2510.00636. The first half of the queries gives mu and Sigma, the second half the means that are predicted.
//   kurtosis  mean of D^4 over (d (d + 2)), D^2 = (q - mu)^T Sigma^-1 (q - mu) of the first half: 1 for normal queries
//             (Mardia 1970, Biometrika 57:519). For a sample of n its mean is (n - 1) / (n + 1), which is divided out
// Everything is in double, without a mask: a key may be weighed by a query before it.
#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

#include "harness/experiment/experiment.hpp"
#include "harness/linalg/products.hpp"
#include "harness/statistics/moments.hpp"
#include "harness/statistics/rank_correlation.hpp"

namespace attnbench::gaussian_queries_experiment {
namespace {

void check_cell(const Cell& cell) {
  if (cell.method.name() != "softmax")
    throw Misuse("gaussian-queries with --method " + cell.method.spec() +
                 ": it measures queries and keys alone; expected --method softmax");
}

// log of the mean over rows of exp(q_i.k_j), for each key.
std::vector<double> log_means(const Matrix<double>& logits) {
  std::vector<double> all;
  for (Index j = 0; j < logits.cols(); ++j) {
    const double largest = logits.col(j).maxCoeff();
    all.push_back(largest + std::log((logits.col(j).array() - largest).exp().mean()));
  }
  return all;
}

void measure(const Task& task, Recorder& record) {
  const auto head = draw_cell_head(task.cell, task.replicate, 0, Purpose::measured);
  const Index n = head.Q.rows() / 2, d = head.Q.cols(), nk = head.K.rows();
  if (n < 2 * d) throw Skip("half of the queries are fewer than 2 d: their covariance says little");
  Matrix<double> early = head.Q.topRows(n);
  const Matrix<double> late = head.Q.bottomRows(head.Q.rows() - n);
  const Eigen::RowVectorXd mean = early.colwise().mean();
  early.rowwise() -= mean;
  const Matrix<double> covariance = early.transpose() * early / static_cast<double>(n);
  const Eigen::LDLT<Matrix<double>> factors(covariance);
  const Matrix<double> whitened = factors.solve(early.transpose());
  if (factors.info() != Eigen::Success || !whitened.allFinite())
    throw Skip("the covariance of the queries is singular");
  double fourth = 0;
  for (Index i = 0; i < n; ++i) fourth += std::pow(early.row(i).dot(whitened.col(i)), 2);
  const double normal = static_cast<double>(d * (d + 2)) * static_cast<double>(n - 1) / static_cast<double>(n + 1);

  Matrix<double> logits(late.rows(), nk);
  multiply_transposed<double>(task.context, late, head.K, logits);
  const std::vector<double> actual = log_means(logits);
  std::vector<double> predicted, of_mean;
  Moments errors;
  for (Index j = 0; j < nk; ++j) {
    const auto key = head.K.row(j);
    of_mean.push_back(mean.dot(key));
    predicted.push_back(of_mean.back() + key.dot(key * covariance) / 2);
    errors.add(predicted.back() - actual[static_cast<size_t>(j)]);
  }
  record.scalar("kurtosis", "1", fourth / static_cast<double>(n) / normal);
  record.scalar("log_weight_bias", "1", errors.mean);
  record.scalar("log_weight_spread", "1", std::sqrt(errors.m2 / errors.count));
  for (const auto& [name, order] : {std::pair{"order", &predicted}, std::pair{"order_of_mean", &of_mean}})
    if (const double found = rank_correlation(*order, actual); std::isfinite(found)) record.scalar(name, "1", found);
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "gaussian-queries",
             .summary = "whether the weight of a key follows from the mean and the covariance of earlier queries",
             .formula =
                 "mu.k + k^T Sigma k / 2 of the first half of the queries against log mean exp(q.k) of the second",
             .reference = "Devoto et al. 2025, arXiv:2510.00636",
             .cost = "O(n^2 d + d^3) time, O(n^2) memory"},
    .parameters = {},
    .metrics = {{"order",
                 "1",
                 "rank correlation over keys of the predicted and the actual mean weight",
                 {},
                 "rank correlation over keys"},
                {"order_of_mean", "1", "the same for mu.k alone"},
                {"kurtosis",
                 "1",
                 "Mardia's kurtosis of the first half over that of a normal sample: 1 if normal",
                 {},
                 "kurtosis over that of normal queries"},
                {"log_weight_bias", "1", "mean over keys of the logarithm of the predicted over the actual weight"},
                {"log_weight_spread", "1", "standard deviation over keys of that logarithm"}},
    .headline = {.metric = "order", .label = "rank correlation of predicted and actual weights of keys"},
    .check = check_cell,
    .bytes = [](const Cell& cell) { return matrix_bytes(cell); },
    .run = measure,
});

}  // namespace
}  // namespace attnbench::gaussian_queries_experiment
