// Random Fourier features of the Gaussian kernel. Rahimi and Recht 2007, Algorithm 1.
//   phi(x) = m^-1/2 [cos(W x); sin(W x)],  rows of W marginally N(0, I_d)      E[phi(q).phi(k)] = exp(-|q-k|^2/2)
//   one row: X = cos(omega.(q-k));  MSE (iid) = (1 - exp(-|q-k|^2))^2 / 2m                     methods.md A7
// The attention that it approximates is softmax(q.k - |k|^2/2). 2m features of any sign. Public code that takes
// sin(2 pi omega.x) with these omega estimates exp(-4 pi^2 |q-k|^2/2) instead.
#include "approximations/linear/features/trigonometric_features.hpp"

namespace attnbench::gaussian_map {
namespace {

template <class T>
class GaussianFeatures final : public TrigonometricFeatures<T> {
 public:
  explicit GaussianFeatures(const Draw& draw) : TrigonometricFeatures<T>(draw, false) {}
};

const bool registered = add(feature_map<GaussianFeatures>({
    .text = {.name = "gaussian",
             .summary = "random Fourier features, unbiased for the Gaussian kernel, any sign",
             .formula = "phi(x) = m^-1/2 [cos(W x); sin(W x)], W m x d",
             .reference = "Rahimi and Recht 2007, Random features for large-scale kernel machines, Algorithm 1",
             .cost = "O(n m d) time, 2m features",
             .family = "trigonometric"},
    .parameters = paired_feature_parameters(),
    .features = [](const Params& params, Index) { return 2 * projection_vectors(params); },
    .token_work = [](const Params& params, Index d) { return projection_work(params, d, 2); },
    .theory = [](const Params& params, Index, const EnsembleLaw& ensemble,
                 const Head<double>*) { return trigonometric_theory("exp(-|q-k|^2/2)", params, ensemble, false); },
}));

}  // namespace
}  // namespace attnbench::gaussian_map
