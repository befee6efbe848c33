// Optimal positive random features (FAVOR++). Likhosherstov et al., arXiv:2205.15317, eq. 6 and Theorem 3.2.
//   phi(x) = m^-1/2 (1-4A)^(d/4) exp(A |omega|^2 + sqrt(1-4A) omega.x - |x|^2/2),  A < 1/8
//   E[phi(q).phi(k)] = exp(q.k) for every A
//   one row (iid): E X^2 = (1-4A)^d (1-8A)^(-d/2) exp(2 (1-4A) |q+k|^2 / (1-8A) - |q|^2 - |k|^2)      methods.md A5
// A = 0 is positive features. A < 0 bounds each feature; the optimum is learnt from the norms of a head.
#include "approximations/linear/features/oprf.hpp"

#include <cmath>

#include "harness/theory/summand.hpp"

namespace attnbench {

double mean_squared_sum(const Head<double>& head) {
  const auto mean_norm2 = [](const In<double>& X) { return X.rowwise().squaredNorm().mean(); };
  return std::max(0.0,
                  mean_norm2(head.Q) + mean_norm2(head.K) + 2 * head.Q.colwise().mean().dot(head.K.colwise().mean()));
}

double oprf_a(const Draw& draw, const Head<double>* head) {
  if (const auto* given = draw.injected("a", 1, 1)) return (*given)(0, 0);
  if (draw.params.has("a") && draw.params.text("a") != "auto") return draw.params.real("a");
  return oprf_optimum(mean_squared_sum(head ? *head : calibration_of(draw, "A")), draw.shape.d);
}

std::optional<KernelTheory> oprf_theory(const Params& params, Index d, const EnsembleLaw& ensemble,
                                        std::optional<double> a) {
  const Index m = projection_vectors(params);
  // For normal rows the mean is exp(q.k) at every A. For rows with other norms the mean depends on A.
  if (!a && !ensemble.gaussian) return std::nullopt;
  if (!a)
    return average_of_summands("exp(q.k)", m, ensemble,
                               {.mean = [](const Pair& p, const EnsembleLaw&) { return p.softmax(); }});
  const double A = *a, scale = std::sqrt(1 - 4 * A), root = std::pow(scale, static_cast<double>(d));
  const double c = (1 - 4 * A) / (2 * (1 - 8 * A));
  const double log_constant = static_cast<double>(d) * (std::log1p(-4 * A) - std::log1p(-8 * A) / 2);  // of E X_j X_l
  return average_of_summands(
      "exp(q.k)", m, ensemble,
      {.mean =
           [=](const Pair& p, const EnsembleLaw& law) {
             return root * std::exp(-(p.q2 + p.k2) / 2) * law.mean_exponential(p, scale, scale, 2 * A);
           },
       .second =
           [=](const Pair& p, const EnsembleLaw& law) {
             return root * root * std::exp(-(p.q2 + p.k2)) * law.mean_exponential(p, 2 * scale, 2 * scale, 4 * A);
           },
       .cross =
           [=](const Pair& p, const EnsembleLaw& law) {
             return root * root * std::exp(-(p.q2 + p.k2)) * law.pair_moment((1 - 4 * A) * p.plus2(), 1, 2 * A);
           },
       .correlation =
           [=](Context& context, const In<double>& q, const In<double>& J, const In<double>& K, Out<double> block) {
             const Matrix<double> z_j = J.rowwise() + q.row(0), z_l = K.rowwise() + q.row(0);
             const auto own = [=](const Matrix<double>& z) {
               return Eigen::ArrayXd((c - 0.5) * z.rowwise().squaredNorm().array());
             };
             const Eigen::ArrayXd own_j = own(z_j) + log_constant, own_l = own(z_l);
             multiply_transposed<double>(context, z_j, z_l, block);
             for (Index j = 0; j < z_j.rows(); ++j)
               block.row(j) = (2 * c * block.row(j).array() + own_l.transpose() + own_j[j]).exp();
           }});
}

namespace {

template <class T>
std::unique_ptr<FeatureMap<T>> make(const Draw& draw) {
  return make_oprf<T>(draw, oprf_a(draw, draw.calibration));
}

std::optional<KernelTheory> theory(const Params& params, Index d, const EnsembleLaw& ensemble,
                                   const Head<double>* calibration) {
  std::optional<double> a;
  if (params.text("a") != "auto")
    a = params.real("a");
  else if (calibration)
    a = oprf_optimum(mean_squared_sum(*calibration), d);
  return oprf_theory(params, d, ensemble, a);
}

const bool registered = add(FeatureMapEntry{
    .text = {.name = "oprf",
             .printed = "OPRF",
             .summary = "optimal positive features (FAVOR++), unbiased for exp(q.k) with bounded features",
             .formula = "phi(x) = m^-1/2 (1-4A)^(d/4) exp(A |omega|^2 + sqrt(1-4A) omega.x - |x|^2/2)",
             .reference = "Likhosherstov et al. 2022, arXiv:2205.15317, Theorem 3.2",
             .cost = "O(n m d) time, m features",
             .family = "positive"},
    .parameters = random_feature_parameters({Parameter::real_or(
        "a", "auto", "A, below 1/8; auto: the optimum for the norms of the calibration head", -1e6, 0.125)}),
    .f32 = make<float>,
    .f64 = make<double>,
    .features = [](const Params& params, Index) { return projection_vectors(params); },
    .token_work = [](const Params& params, Index d) { return projection_work(params, d, 1); },
    .non_negative = true,
    .fitted = [](const Params& params) { return params.text("a") == "auto"; },
    .theory = theory,
});

}  // namespace
}  // namespace attnbench
