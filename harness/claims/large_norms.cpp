// exp(q.k) at |q| = |k| = 40 is e^1600. In float only a stabilised computation survives, and published stabilisers fail
// (keys underflow as |k| grows). Checks that every number is finite and, if nothing cancels, that rows
// still sum to one: of kernels that estimate exp(q.k), and of methods whose random sums have it as their mean.
#include "harness/claims/structural.hpp"
#include "harness/core/estimates.hpp"
#include "harness/core/torch_place.hpp"

namespace attnbench {

ClaimResults test_large_norms(const Subject& subject, const Probes& probes, std::uint64_t seed) {
  constexpr const char* claim = "large-norms";
  constexpr float norm = 40;
  ClaimResults results;
  for (const Probe& one : probes) {
    const Drawing drawing(subject, subject.params, one.shape, seed);
    const auto theory = drawing.theory();
    const auto method = drawing.draw<float>(0);
    if (!unbiased_sums(*method) && (!theory || theory->target != "exp(q.k)"))
      return {skipped(claim, "neither its kernel nor its sums estimate exp(q.k)")};
    const Claims claims = subject.claims(subject.params, one.shape);
    if (claims.normaliser == Normaliser::none)
      return {skipped(claim, "its weights are not normalised, and e^1600 is not a float")};
    HeadData<float> head = one.head.cast<float>();
    head.Q.rowwise().normalize();
    head.K.rowwise().normalize();
    head.Q *= norm;
    head.K *= norm;
    const Matrix<float> out = attended(*method, head, one.shape.mask);
    results.push_back(compared(claim, "NaN or infinite numbers, " + one.name(),
                               static_cast<double>((!out.array().isFinite()).count()), 0));
    if (!claims.row_stochastic || !claims.non_negative) continue;
    head.V.setOnes();
    const Matrix<float> sums = attended(*method, head, one.shape.mask);
    // Sums over at most 600 keys and 2^20 features of one sign are accurate to 1e-3 in float, in any order.
    results.push_back(compared(claim, "row sums less 1, " + one.name(),
                               static_cast<double>((sums.array() - 1).abs().maxCoeff()),
                               limit_at_dtype(subject.params, 1e-3)));
  }
  return results;
}

}  // namespace attnbench
