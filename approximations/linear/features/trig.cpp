// Trigonometric random features for the softmax kernel (FAVOR). Choromanski et al., arXiv:2009.14794, eq. 4.
//   phi(x) = m^-1/2 exp(|x|^2/2) [cos(W x); sin(W x)],  rows of W marginally N(0, I_d)     E[phi(q).phi(k)] = exp(q.k)
//   one row: X = exp((|q|^2+|k|^2)/2) cos(omega.(q-k));  MSE (iid) = exp(s) (1 - exp(-|q-k|^2))^2 / 2m
// s = |q|^2+|k|^2 (methods.md A2).
// 2m features of any sign: a row's normaliser may be zero or negative.
#include "approximations/linear/features/trigonometric_features.hpp"

namespace attnbench::trig_map {
namespace {

template <class T>
class TrigFeatures final : public TrigonometricFeatures<T> {
 public:
  explicit TrigFeatures(const Draw& draw) : TrigonometricFeatures<T>(draw, true) {}
};

const bool registered = add(feature_map<TrigFeatures>({
    .text = {.name = "trig",
             .printed = "trig.",
             .summary = "trigonometric random features (FAVOR), unbiased for exp(q.k), any sign",
             .formula = "phi(x) = m^-1/2 exp(|x|^2/2) [cos(W x); sin(W x)], W m x d",
             .reference = "Choromanski et al. 2020, arXiv:2009.14794, eq. 4",
             .cost = "O(n m d) time, 2m features",
             .family = "trigonometric"},
    .parameters = paired_feature_parameters(),
    .features = [](const Params& params, Index) { return 2 * projection_vectors(params); },
    .token_work = [](const Params& params, Index d) { return projection_work(params, d, 2); },  // a sine and a cosine
    .theory = [](const Params& params, Index, const EnsembleLaw& ensemble,
                 const Head<double>*) { return trigonometric_theory("exp(q.k)", params, ensemble, true); },
}));

}  // namespace
}  // namespace attnbench::trig_map
