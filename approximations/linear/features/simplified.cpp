// Exponentials of a projection without the norm factor of positive features: the Performer of source 000, and the
// exponential function among the generalised ones.                                                   methods.md A7, A11
//   phi(q) = m^-1/2 exp(W q),  phi(k) = m^-1/2 exp(W k)               E[phi(q).phi(k)] = exp(|q+k|^2/2)
//   phi(q) = m^-1/2 exp(W q),  phi(k) = m^-1/2 exp(W k - |k|^2/2)     the same times exp(-|k|^2/2), with key_norm
//   one row (iid), without key_norm: Var X = exp(2 |q+k|^2) - exp(|q+k|^2)
// With key_norm the attention equals that of positive features, because a factor of the query cancels. Without it the
// limit m -> oo is softmax(q.k + |k|^2/2), and rows equal those of positive features if all keys have the same norm.
#include <cmath>

#include "approximations/linear/features/exponential_features.hpp"
#include "harness/theory/summand.hpp"

namespace attnbench::simplified_map {
namespace {

bool key_norm(const Params& params) { return params.has("key_norm") && params.flag("key_norm"); }

template <class T>
std::unique_ptr<FeatureMap<T>> make(const Draw& draw) {
  const Index m = projection_vectors(draw.params);
  const Matrix<double> W = rounded<T>(draw_projection(draw, m));
  return std::make_unique<ExponentialFeatures<T>>(
      W, Matrix<double>::Constant(m, 1, -0.5 * std::log(static_cast<double>(m))), false, Tensors{{"projection", W}},
      key_norm(draw.params) ? NormFactor::keys : NormFactor::none);
}

std::optional<KernelTheory> theory(const Params& params, Index, const EnsembleLaw& ensemble, const Head<double>*) {
  const bool norm = key_norm(params);
  const auto factor = [=](const Pair& p, int power) { return norm ? std::exp(-power * p.k2 / 2) : 1.0; };
  return average_of_summands(
      norm ? "exp(q.k + |q|^2/2)" : "exp(|q+k|^2/2)", projection_vectors(params), ensemble,
      {.mean = [=](const Pair& p, const EnsembleLaw& law) { return factor(p, 1) * law.mean_exponential(p, 1, 1); },
       .second = [=](const Pair& p, const EnsembleLaw& law) { return factor(p, 2) * law.mean_exponential(p, 2, 2); },
       .cross = [=](const Pair& p, const EnsembleLaw& law) { return factor(p, 2) * law.pair_moment(p.plus2(), 1, 0); },
       // exp((q + k_j).(q + k_l)), as for positive features: factors of one token cancel.
       .correlation =
           [](Context& context, const In<double>& q, const In<double>& J, const In<double>& K, Out<double> block) {
             multiply_transposed<double>(context, Matrix<double>(J.rowwise() + q.row(0)),
                                         Matrix<double>(K.rowwise() + q.row(0)), block);
             block = block.array().exp();
           }});
}

FeatureMapEntry entry(Description text, std::vector<Parameter> own) {
  return {.text = std::move(text),
          .parameters = random_feature_parameters(std::move(own)),
          .f32 = make<float>,
          .f64 = make<double>,
          .features = [](const Params& params, Index) { return projection_vectors(params); },
          .token_work = [](const Params& params, Index d) { return projection_work(params, d, 1); },
          .non_negative = true,
          .theory = theory};
}

const bool registered =
    add(entry({.name = "simplified",
               .summary = "positive features without norm factors, or with the keys' alone: softmax(q.k + |k|^2/2)",
               .formula = "phi(q) = m^-1/2 exp(W q), phi(k) = m^-1/2 exp(W k) [exp(-|k|^2/2)]",
               .reference = "Su Jianlin, kexue.fm 8338",
               .cost = "O(n m d) time, m features",
               .family = "positive"},
              {Parameter::flag("key_norm", false, "the norm factor of keys: the attention of positive features")})) &&
    add(entry({.name = "exp",
               .summary = "exponentials of a projection, unbiased for exp(|q+k|^2/2)",
               .formula = "phi(x) = m^-1/2 exp(W x), W m x d",
               .reference = "Choromanski et al. 2020, arXiv:2009.14794, generalized attention",
               .cost = "O(n m d) time, m features",
               .family = "positive"},
              {}));

}  // namespace
}  // namespace attnbench::simplified_map
