// Symmetric dense-exponential random features. Likhosherstov et al., arXiv:2302.00787, Theorem 4.3.
//   phi(x) = m^-1/2 D exp(omega' A omega + omega' B x - |x|^2/2),  B = (I-4A)^(1/2) U^T,  D = det(I-4A)^(1/4)
//   M = M1 + M2 + mu1 mu2^T + mu2 mu1^T = U diag(lambda) U^T,  A = diag(a)
//   a_l = (1 - 2 lambda_l - sqrt((2 lambda_l + 1)^2 + 8 lambda_l)) / 16
//   one row (iid): E X^2 = det(I-4A) det(I-8A)^(-1/2) exp(2 z' U (I-4A) (I-8A)^-1 U' z - |q|^2 - |k|^2), z = q + k
// methods.md A6. M is the second moment of q_i + k_j over all pairs of a head; each of its axes gets its own OPRF.
#include <cmath>

#include "approximations/linear/features/oprf.hpp"
#include "harness/linalg/factorisations.hpp"
#include "harness/linalg/products.hpp"
#include "harness/theory/summand.hpp"

namespace attnbench::sderf_map {
namespace {

struct Fit {
  Matrix<double> a;  // 1 x d
  Matrix<double> U;  // d x d, one axis a column
};

Fit fit(const Head<double>& head) {
  const Index d = head.Q.cols();
  Context context;
  const auto moments = [&](const In<double>& X) {
    Matrix<double> M = Matrix<double>::Zero(d, d);
    transposed_multiply_add<double>(context, X, X, M);
    return Matrix<double>(M / static_cast<double>(std::max<Index>(1, X.rows())));
  };
  const Matrix<double> q = head.Q.colwise().mean(), k = head.K.colwise().mean();
  Matrix<double> M = moments(head.Q) + moments(head.K);
  transposed_multiply_add<double>(context, q, k, M);
  transposed_multiply_add<double>(context, k, q, M);
  const auto [lambda, U] = symmetric_eigenvectors(M);
  Fit fitted{Matrix<double>(1, d), U};
  for (Index l = 0; l < d; ++l) fitted.a(0, l) = oprf_optimum(std::max(0.0, lambda[static_cast<size_t>(l)]), 1);
  return fitted;
}

template <class T>
std::unique_ptr<FeatureMap<T>> make(const Draw& draw) {
  const Index d = draw.shape.d;
  const auto *given_a = draw.injected("a", 1, d), *given_U = draw.injected("U", d, d);
  if ((given_a == nullptr) != (given_U == nullptr))
    throw Misuse(draw.params.spec() + ": of the injected tensors a [1, d] and U [d, d] one is missing; give both");
  Fit fitted = given_a ? Fit{*given_a, *given_U} : fit(calibration_of(draw, "A"));
  fitted = {rounded<T>(fitted.a), rounded<T>(fitted.U)};
  const Matrix<double> W = rounded<T>(draw_projection(draw, projection_vectors(draw.params)));
  const Eigen::ArrayXd a = fitted.a.row(0).transpose().array();
  const double constant = (-4 * a).log1p().sum() / 4 - 0.5 * std::log(static_cast<double>(W.rows()));
  const Matrix<double> offsets = (W.array().square().rowwise() * a.transpose()).rowwise().sum() + constant;
  const Matrix<double> scaled = W * (1 - 4 * a).sqrt().matrix().asDiagonal();
  Matrix<double> projected(W.rows(), d);
  Context context;
  multiply_transposed<double>(context, scaled, fitted.U, projected);
  return std::make_unique<ExponentialFeatures<T>>(projected, offsets, false,
                                                  Tensors{{"projection", W}, {"a", fitted.a}, {"U", fitted.U}});
}

// With normal rows the mean holds for every A. The second moment (independent rows) uses the A and U of the head.
std::optional<KernelTheory> theory(const Params& params, Index, const EnsembleLaw& ensemble,
                                   const Head<double>* calibration) {
  if (!ensemble.gaussian) return std::nullopt;
  SummandMoments moments{.mean = [](const Pair& p, const EnsembleLaw&) { return p.softmax(); }};
  if (calibration) {
    const Fit fitted = fit(*calibration);
    const Eigen::ArrayXd a = fitted.a.row(0).transpose().array();
    const double log_constant = (-4 * a).log1p().sum() - (-8 * a).log1p().sum() / 2;
    const Eigen::ArrayXd weight = (1 - 4 * a) / (1 - 8 * a);
    moments.second = [=](const Pair& p, const EnsembleLaw&) {
      const Eigen::Map<const Eigen::VectorXd> q(p.q.data(), p.d), k(p.k.data(), p.d);
      const Eigen::VectorXd z = fitted.U.transpose() * (q + k);
      return std::exp(log_constant + 2 * (weight * z.array().square()).sum() - p.q2 - p.k2);
    };
  }
  return average_of_summands("exp(q.k)", projection_vectors(params), ensemble, moments);
}

const bool registered = add(FeatureMapEntry{
    .text = {.name = "sderf",
             .printed = "SDERF",
             .summary = "OPRF with an A of its own along each principal axis of q + k (SDERF)",
             .formula = "phi(x) = m^-1/2 det(I-4A)^(1/4) exp(omega' A omega + omega' (I-4A)^(1/2) U^T x - |x|^2/2)",
             .reference = "Likhosherstov et al. 2023, arXiv:2302.00787, Theorem 4.3",
             .cost = "O(n m d) time, m features",
             .family = "positive"},
    .parameters = random_feature_parameters(),
    .f32 = make<float>,
    .f64 = make<double>,
    .features = [](const Params& params, Index) { return projection_vectors(params); },
    .token_work = [](const Params& params, Index d) { return projection_work(params, d, 1); },
    .non_negative = true,
    .fitted = [](const Params&) { return true; },
    .theory = theory,
});

}  // namespace
}  // namespace attnbench::sderf_map
