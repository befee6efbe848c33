// Hyperbolic positive random features. Choromanski et al., arXiv:2009.14794, Lemma 1 (hyp+).
//   phi(x) = (2m)^-1/2 exp(-|x|^2/2) [exp(W x); exp(-W x)],  rows of W marginally N(0, I_d)
//   E[phi(q).phi(k)] = exp(q.k);  one row: X = exp(-(|q|^2+|k|^2)/2) cosh(omega.(q+k))
//   MSE (iid) = (1 - exp(-|q+k|^2)) / 2 times positive's                                              methods.md A3
// m vectors give 2m features. Each draw equals positive features on the antithetic pairs omega, -omega.
#include <cmath>

#include "approximations/linear/features/exponential_features.hpp"
#include "harness/theory/summand.hpp"

namespace attnbench::hyperbolic_map {
namespace {

template <class T>
class HyperbolicFeatures final : public ExponentialFeatures<T> {
 public:
  explicit HyperbolicFeatures(const Draw& draw)
      : HyperbolicFeatures(rounded<T>(draw_projection(draw, projection_vectors(draw.params)))) {}

 private:
  explicit HyperbolicFeatures(const Matrix<double>& W)
      : ExponentialFeatures<T>(
            W, Matrix<double>::Constant(W.rows(), 1, -0.5 * std::log(2 * static_cast<double>(W.rows()))), true,
            {{"projection", W}}) {}
};

std::optional<KernelTheory> theory(const Params& params, Index, const EnsembleLaw& ensemble, const Head<double>*) {
  return average_of_summands(
      "exp(q.k)", projection_vectors(params), ensemble,
      {.mean = [](const Pair& p,
                  const EnsembleLaw& law) { return std::exp(-(p.q2 + p.k2) / 2) * law.mean_exponential(p, 1, 1); },
       .second =
           [](const Pair& p, const EnsembleLaw& law) {
             return std::exp(-(p.q2 + p.k2)) * (1 + law.mean_exponential(p, 2, 2)) / 2;  // cosh^2 = (1 + cosh 2x) / 2
           },
       .cross =
           [](const Pair& p, const EnsembleLaw& law) {
             return std::exp(-(p.q2 + p.k2)) * (law.pair_moment(p.plus2(), 1, 0) + law.pair_moment(p.plus2(), -1, 0)) /
                    2;
           },
       // cosh((q + k_j).(q + k_l))                                                                   methods.md A4
       .correlation =
           [](Context& context, const In<double>& q, const In<double>& J, const In<double>& K, Out<double> block) {
             multiply_transposed<double>(context, Matrix<double>(J.rowwise() + q.row(0)),
                                         Matrix<double>(K.rowwise() + q.row(0)), block);
             block = block.array().cosh();
           }});
}

const bool registered = add(feature_map<HyperbolicFeatures>({
    .text = {.name = "hyperbolic",
             .summary = "hyperbolic positive features (hyp+), unbiased for exp(q.k)",
             .formula = "phi(x) = (2m)^-1/2 exp(-|x|^2/2) [exp(W x); exp(-W x)], W m x d",
             .reference = "Choromanski et al. 2020, arXiv:2009.14794, Lemma 1",
             .cost = "O(n m d) time, 2m features",
             .family = "positive"},
    .parameters = paired_feature_parameters(),
    .features = [](const Params& params, Index) { return 2 * projection_vectors(params); },
    .token_work = [](const Params& params, Index d) { return projection_work(params, d, 2); },
    .non_negative = true,
    .theory = theory,
}));

}  // namespace
}  // namespace attnbench::hyperbolic_map
