// The gradients of causal linear attention as published, and those of the attention. Katharopoulos et al.,
// arXiv:2006.16236, eq. 13 to 15, and methods.md H3. num_i = sum_(j <= i) (phi(q_i).phi(k_j)) v_j, den_i likewise with
// 1 for v_j, out_i = num_i / den_i, phi = elu + 1. For a gradient G_i with respect to num_i
//   d phi(q_i) = S_i G_i,  d phi(k_i) = R_i v_i,  d v_i = R_i^T phi(k_i),
//   S_i = sum_(j <= i) phi(k_j) v_j^T,  R_i = sum_(j >= i) phi(q_j) G_j^T:   one pass each way, constant state.
// These are the full gradients of the numerators. For the attention itself, G_i = g_i / den_i and the terms of the
// denominators are missing: gamma_i Z_i in d phi(q_i) and zeta_i in d phi(k_i). d v_i is complete.
// Each gradient is compared with central differences of its loss along random directions, in double.
#include <cmath>

#include "experiments/loss_gradients.hpp"

namespace attnbench::gradients_experiment {
namespace {

Matrix<double> elu_plus_one(const Matrix<double>& X) {
  return X.unaryExpr([](double x) { return x > 0 ? 1 + x : std::exp(x); });
}
Matrix<double> slope(const Matrix<double>& X) {
  return X.unaryExpr([](double x) { return x > 0 ? 1.0 : std::exp(x); });
}

struct Pass {
  Matrix<double> numerators;  // n x dv
  Eigen::VectorXd denominators;
};

Pass pass(const HeadData<double>& x) {
  const Matrix<double> phi_q = elu_plus_one(x.Q), phi_k = elu_plus_one(x.K);
  Matrix<double> S = Matrix<double>::Zero(x.Q.cols(), x.V.cols());
  Eigen::VectorXd Z = Eigen::VectorXd::Zero(x.Q.cols());
  Pass found{Matrix<double>(x.Q.rows(), x.V.cols()), Eigen::VectorXd(x.Q.rows())};
  for (Index i = 0; i < x.Q.rows(); ++i) {
    S += phi_k.row(i).transpose() * x.V.row(i);
    Z += phi_k.row(i).transpose();
    found.numerators.row(i) = phi_q.row(i) * S;
    found.denominators[i] = phi_q.row(i) * Z;
  }
  return found;
}

// Eq. 13 to 15 as printed, times the slope of phi to get the gradients of the queries and keys themselves.
HeadData<double> published_gradients(const HeadData<double>& x, const Matrix<double>& G) {
  const Matrix<double> phi_q = elu_plus_one(x.Q), phi_k = elu_plus_one(x.K);
  HeadData<double> gradients{Matrix<double>(x.Q.rows(), x.Q.cols()), Matrix<double>(x.K.rows(), x.K.cols()),
                             Matrix<double>(x.V.rows(), x.V.cols())};
  Matrix<double> S = Matrix<double>::Zero(x.Q.cols(), x.V.cols()), R = S;
  for (Index i = 0; i < x.Q.rows(); ++i) {
    S += phi_k.row(i).transpose() * x.V.row(i);
    gradients.Q.row(i) = G.row(i) * S.transpose();
  }
  for (Index i = x.Q.rows() - 1; i >= 0; --i) {
    R += phi_q.row(i).transpose() * G.row(i);
    gradients.K.row(i) = x.V.row(i) * R.transpose();
    gradients.V.row(i) = phi_k.row(i) * R;
  }
  gradients.Q.array() *= slope(x.Q).array();
  gradients.K.array() *= slope(x.K).array();
  return gradients;
}

// Compares a gradient with numerical derivatives of its loss along random directions of Q, K or V.
class Directions {
 public:
  Directions(const HeadData<double>& at, Index count, Generator generator) : at_(at) {
    for (Index c = 0; c < count; ++c)
      all_.push_back({standard_normal(generator, at.Q.rows(), at.Q.cols()),
                      standard_normal(generator, at.K.rows(), at.K.cols()),
                      standard_normal(generator, at.V.rows(), at.V.cols())});
  }

  // Root mean square of the gradient's deviations, over that of the numerical derivatives.
  template <class Loss>
  double error(Matrix<double> HeadData<double>::*tensor, const HeadData<double>& gradients, const Loss& loss) const {
    // Rounding divided by the step is about 1e-9; a step across the kink of elu at 0 costs 5e-7 at most.
    constexpr double step = 1e-6;
    double off = 0, whole = 0;
    for (const auto& direction : all_) {
      HeadData<double> ahead = at_, behind = at_;
      ahead.*tensor += step * (direction.*tensor);
      behind.*tensor -= step * (direction.*tensor);
      const double difference = (loss(ahead) - loss(behind)) / (2 * step),
                   said = (gradients.*tensor).cwiseProduct(direction.*tensor).sum();
      off += (said - difference) * (said - difference);
      whole += difference * difference;
    }
    return std::sqrt(off / whole);
  }

 private:
  const HeadData<double>& at_;
  std::vector<HeadData<double>> all_;
};

void refuse_other_attention(const Cell& cell) {
  if (cell.method.spec() != "linear" || !cell.problem.shape.mask.causal)
    throw Misuse("gradients of " + cell.method.spec() + (cell.problem.shape.mask.causal ? "" : " without a mask") +
                 ": eq. 13 to 15 are of causal linear attention with elu + 1; expected --method linear --causal true");
}

void measure(const Task& task, Recorder& record) {
  const auto& mask = task.cell.problem.shape.mask;
  const auto head = draw_cell_head(task.cell, task.replicate, 0, Purpose::measured);
  const Streams streams(task.cell.seed);
  const Matrix<double> g = loss_weights(task, 0);
  const Directions directions(head, task.cell.experiment.integer("directions"),
                              streams.stream("directions of differences", head.Q.rows(), task.replicate));

  const auto method = task.method<double>(0, task.replicate);
  const auto attention_loss = [&](const HeadData<double>& x) {
    Matrix<double> out(x.Q.rows(), x.V.cols());
    method->attend(x.view(), mask, task.context, out);
    return g.cwiseProduct(out).sum();
  };
  const HeadData<double> whole = loss_gradients(task, *method, head, g);

  const HeadData<double> of_numerators = published_gradients(head, g);
  Matrix<double> scaled = g;
  scaled.array().colwise() /= pass(head).denominators.array();
  const HeadData<double> published = published_gradients(head, scaled);

  using Tensor = Matrix<double> HeadData<double>::*;
  for (const auto& [name, tensor] : {std::pair<const char*, Tensor>{"queries", &HeadData<double>::Q},
                                     {"keys", &HeadData<double>::K},
                                     {"values", &HeadData<double>::V}}) {
    const std::string of = name;
    record.scalar("numerator_error_" + of, "1", directions.error(tensor, of_numerators, [&](const auto& x) {
      return g.cwiseProduct(pass(x).numerators).sum();
    }));
    record.scalar("published_error_" + of, "1", directions.error(tensor, published, attention_loss));
    record.scalar("whole_error_" + of, "1", directions.error(tensor, whole, attention_loss));
  }
}

std::vector<Metric> metrics() {
  std::vector<Metric> all;
  for (const std::string of : {"queries", "keys", "values"}) {
    all.push_back({"numerator_error_" + of, "1", "eq. 13 to 15 against differences of <G, num>, relative, " + of});
    all.push_back({"published_error_" + of, "1",
                   "eq. 13 to 15 with G_i = g_i / den_i against differences of <g, out>, relative, " + of});
    all.push_back({"whole_error_" + of, "1",
                   "the method's gradients, denominators included, against differences of <g, out>, relative, " + of});
  }
  return all;
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "gradients",
             .summary = "published gradients of causal linear attention against differences of numerators and output",
             .formula = "d phi(q_i) = S_i G_i, d phi(k_i) = R_i v_i, d v_i = R_i^T phi(k_i)",
             .reference = "Katharopoulos et al. 2020, arXiv:2006.16236, eq. 13 to 15",
             .cost = "O(directions n d dv)"},
    .parameters = {Parameter::integer("directions", 8, "random directions of each of Q, K and V", 1, 4096)},
    .metrics = metrics(),
    .headline = {.metric = "published_error_queries", .label = "relative error of published gradients, queries"},
    .check = refuse_other_attention,
    .run = measure,
});

}  // namespace
}  // namespace attnbench::gradients_experiment
