// The certificate of WildCat: the residual of the keys that its coreset does not span, which bounds the error of every
// weight and is known without an n x n matrix. Schroeder and Mackey, arXiv:2602.10056; methods.md E7.
//   x_j = (k_j - mean) / tau, tau^2 = 3.94582 max|k| / max|q|;  h_jl = exp(x_j.x_l);  S the chosen keys
//   residual_j = h_jj - h_jS h_SS^-1 h_Sj;  |exp(q.k_j) - K'_j| <= exp(tau^2 |q|^2 / 2) residual_j^1/2
// S follows from the method's own random numbers. The residuals come from the running subtraction of pivoted Cholesky,
// and once more from the inverse of h_SS; K' is the kernel of the method itself, so the bound fails if it were another
// coreset's.
#include <algorithm>
#include <cmath>

#include "harness/experiment/experiment.hpp"
#include "harness/linalg/factorisations.hpp"
#include "harness/linalg/pivoted_cholesky.hpp"
#include "harness/linalg/products.hpp"

namespace attnbench::coreset_certificate_experiment {
namespace {

constexpr double least_residual = 1e-10;  // in the bound: below it rounding decides

void refuse_what_has_no_certificate(const Cell& cell) {
  const Params& method = cell.method;
  if (method.name() != "wildcat" || method.flag("clip") || method.integer("bins") != 1)
    throw Misuse("coreset-certificate with --method " + method.spec() +
                 ": expected one coreset whose output is not clipped, as in --method wildcat:r=64,clip=false");
  if (const Index r = method.integer("r"); r >= cell.problem.shape.nk)
    throw Misuse("coreset-certificate with --method " + method.spec() + ": " + std::to_string(cell.problem.shape.nk) +
                 " keys; expected more keys than r, as in -n " + std::to_string(2 * r));
}

// exp(-|x - y|^2 / 2) for the rows of X and of Y.
Matrix<double> gaussian_kernel(Context& context, const Matrix<double>& X, const Matrix<double>& Y) {
  Matrix<double> G(X.rows(), Y.rows());
  multiply_transposed<double>(context, X, Y, G);
  const Eigen::VectorXd of_X = X.rowwise().squaredNorm() / 2, of_Y = Y.rowwise().squaredNorm() / 2;
  return ((G.colwise() - of_X).rowwise() - of_Y.transpose()).array().exp();
}

std::vector<double> residual_by_inverse(Context& context, const Matrix<double>& X, const std::vector<Index>& S) {
  Matrix<double> chosen(std::ssize(S), X.cols());
  for (Index s = 0; s < chosen.rows(); ++s) chosen.row(s) = X.row(S[static_cast<size_t>(s)]);
  const Matrix<double> to_all = gaussian_kernel(context, chosen, X);
  Matrix<double> weights(to_all.rows(), to_all.cols());
  multiply<double>(context, inverse(gaussian_kernel(context, chosen, chosen)), to_all, weights);
  std::vector<double> residual;
  for (Index j = 0; j < X.rows(); ++j) residual.push_back(1 - to_all.col(j).dot(weights.col(j)));
  return residual;
}

void measure(const Task& task, Recorder& record) {
  const auto head = draw_cell_head(task.cell, task.replicate, 0, Purpose::measured);
  const auto method = task.method<double>(0, task.replicate);
  if (!method->kernel()) throw Skip("coreset-certificate: a kernel of padded keys");
  const Matrix<double>& Q = head.Q;
  const Eigen::RowVectorXd mean = head.K.colwise().mean();
  const Matrix<double> K = head.K.rowwise() - mean;
  const double tau = std::sqrt(3.94582 * K.rowwise().norm().maxCoeff() / Q.rowwise().norm().maxCoeff());
  const Matrix<double> X = K / tau, drawn = method->state().at("uniforms");
  const auto found = pivoted_cholesky(task.context, X, {drawn.data(), static_cast<size_t>(drawn.size())});
  const auto direct = residual_by_inverse(task.context, X, found.pivots);
  // Relative to the largest exp(|x|^2), which may overflow.
  const double largest = *std::max_element(found.squares.begin(), found.squares.end());
  double trace = 0, running = 0, by_inverse = 0;
  for (size_t j = 0; j < direct.size(); ++j) {
    const double scale = std::exp(found.squares[j] - largest);
    trace += scale;
    running += scale * found.residual[j];
    by_inverse += scale * direct[j];
  }
  record.scalar("residual_share", "1", running / trace);
  record.scalar("residual_share_direct", "1", by_inverse / trace);

  const Index nq = Q.rows(), nk = K.rows();
  Matrix<double> weights(nq, nk);
  std::vector<double> log_rows(static_cast<size_t>(nq)), log_columns(static_cast<size_t>(nk));
  method->kernel()->kernel(head.view(), task.context, weights, log_rows, log_columns);
  const Matrix<double> exact = gaussian_kernel(task.context, tau * Q, X);
  double worst = 0;
  for (Index i = 0; i < nq; ++i)
    for (Index j = 0; j < nk; ++j) {
      const auto place = static_cast<size_t>(j);
      // As in `exact`, over exp(tau^2 |q|^2 / 2 + |x|^2 / 2), with the mean of the keys taken off.
      const double log_scale = log_rows[static_cast<size_t>(i)] + log_columns[place] - Q.row(i).dot(mean) -
                               tau * tau * Q.row(i).squaredNorm() / 2 - found.squares[place] / 2;
      const double error = std::abs(exact(i, j) - weights(i, j) * std::exp(log_scale));
      worst = std::max(worst, error / std::sqrt(std::max(found.residual[place], least_residual)));
    }
  record.scalar("bound_ratio", "1", worst);
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "coreset-certificate",
             .summary = "the residual that certifies the error of WildCat's weights, against itself computed directly",
             .formula = "tr(h - h_.S h_SS^-1 h_S.) / tr h, and max_ij |exp(q.k) - K'| / (exp(tau^2 |q|^2 / 2) "
                        "residual_j^1/2)",
             .reference = "Schroeder and Mackey 2026, arXiv:2602.10056",
             .cost = "O(n^2 (r + d)) time, O(n^2) memory"},
    .parameters = {},
    .metrics = {{"residual_share",
                 "1",
                 "trace of the residual over that of h, as pivoted Cholesky subtracts it",
                 {},
                 "residual trace / trace of h",
                 "log10"},
                {"residual_share_direct", "1", "the same by the inverse of h_SS"},
                {"bound_ratio", "1",
                 "greatest error of a weight over its bound; residuals below 1e-10 of h count as 1e-10"}},
    .headline = {.metric = "residual_share", .label = "residual trace / trace of h"},
    .check = refuse_what_has_no_certificate,
    .bytes = [](const Cell& cell) { return 3 * matrix_bytes(cell); },
    .run = measure,
});

}  // namespace
}  // namespace attnbench::coreset_certificate_experiment
