// Asymmetric dense-exponential random features. Likhosherstov et al., arXiv:2302.00787, Theorem 4.2: A = aI, and
//   B1 = sqrt(1-4a) G, B2 = sqrt(1-4a) G^-T,  G = P^(1/2),  P M1 P = M2,  M1 = Q^T Q / n, M2 = K^T K / n
// which is OPRF on q' = q G, k' = k G^-T with a at its optimum there. methods.md A6.
#include "approximations/linear/features/oprf.hpp"

namespace attnbench::aderf_map {
namespace {

const bool registered = add(transformed_oprf<TransformKind::full>(
    {.name = "aderf",
     .printed = "ADERF",
     .summary = "OPRF after the linear map that evens out the second moments of q and k (ADERF)",
     .formula = "phi(x) = OPRF(x G) for queries, OPRF(x G^-T) for keys, G^2 M1 G^2 = M2",
     .reference = "Likhosherstov et al. 2023, arXiv:2302.00787, Theorem 4.2",
     .cost = "O(n d (m + d)) time, m features",
     .family = "positive",
     .departure = "adds 1e-4 of their mean to the diagonal of both moment matrices, so that keys which span few "
                  "directions give no ill-conditioned G: on two Gaussian heads this moves the kernel by 5e-5 and "
                  "2e-5, and it stays unbiased"}));

}  // namespace
}  // namespace attnbench::aderf_map
