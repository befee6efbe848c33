// Simplified asymmetric dense-exponential random features. Likhosherstov et al., arXiv:2302.00787, section 3 (the form
// that FAVOR# uses on accelerators): OPRF after an entrywise rescaling.
//   q' = psi q,  k' = k / psi,  psi_l = (sum_j k_jl^2 / sum_i q_il^2)^(1/4);  A at its optimum for q', k'
// methods.md A6.
#include "approximations/linear/features/oprf.hpp"

namespace attnbench::saderf_map {
namespace {

const bool registered = add(transformed_oprf<TransformKind::diagonal>(
    {.name = "saderf",
     .printed = "SADERF",
     .summary = "OPRF after a rescaling of each channel that evens out q and k (FAVOR#)",
     .formula = "phi(x) = OPRF(psi x) for queries, OPRF(x / psi) for keys, psi_l = (sum k_l^2 / sum q_l^2)^(1/4)",
     .reference = "Likhosherstov et al. 2023, arXiv:2302.00787, section 3",
     .cost = "O(n d (m + d)) time, m features",
     .family = "positive",
     .departure = "adds 1e-4 of their mean to the moments of the channels, so that a channel without keys has a psi; "
                  "the kernel stays unbiased"}));

}  // namespace
}  // namespace attnbench::saderf_map
