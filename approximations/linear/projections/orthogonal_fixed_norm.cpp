// Block-orthogonal directions, all of norm sqrt(d): the regularised softmax kernel. Choromanski et al.,
// arXiv:2009.14794, Theorem 1. In blocks of d, the rows of a Haar-distributed orthogonal matrix times sqrt(d).
//   E exp(omega.z)               = 0F1(; d/2; d |z|^2 / 4)  <  exp(|z|^2 / 2)
//   E exp((omega_1 + omega_2).z) = 0F1(; d/2; d |z|^2 / 2)                          two rows of a block, methods.md B
// The kernel is exp(-(|q|^2+|k|^2)/2) 0F1(; d/2; d |q+k|^2 / 4), below exp(q.k): at d = 64 by 0.4 % where |q+k|^2 = 1
// and by 92 % where it is 32. The directions are those of `orthogonal`, so that the two are paired.
#include "approximations/linear/projections/blocks.hpp"
#include "harness/theory/special_functions.hpp"

namespace attnbench::orthogonal_fixed_norm_projection {
namespace {

EnsembleLaw law(const Params&, Index dimensions) {
  const double d = static_cast<double>(dimensions);
  return {.moment = [d](double t, double alpha) { return std::exp(alpha * d) * hypergeometric_0f1(d / 2, d * t / 4); },
          .gaussian = false,
          .dependent_pairs = [dimensions](Index m) { return pairs_in_blocks(m, dimensions); },
          .pair_moment = [d](double t, int,
                             double alpha) { return std::exp(2 * alpha * d) * hypergeometric_0f1(d / 2, d * t / 2); },
          .block = dimensions,
          .cosine = 0,
          .norm = std::sqrt(d)};
}

const bool registered = add(ProjectionEntry{
    .text = {.name = "orthogonal-fixed-norm",
             .printed = "orthogonal, fixed norm",
             .summary = "orthogonal within blocks of d, all norms sqrt(d): estimates a kernel below exp(q.k)",
             .formula = "sqrt(d) times the rows of Q, Q Haar on O(d), one Q for each block of d rows",
             .reference = "Choromanski et al. 2020, arXiv:2009.14794, Theorem 1 (SMREG)",
             .cost = "O(m d^2) for the Haar matrices, once a draw"},
    .parameters = {},
    .draw =
        [](const Draw& draw, Index m, Index d) {
          Generator generator = orthogonal_stream(draw, d);
          return stacked_blocks(m, d, d, [&]() -> Matrix<double> {
            const Matrix<double> Q = haar_orthogonal(generator, d);
            chi(generator, d, d);  // the norms of `orthogonal`, which shares the directions
            return std::sqrt(static_cast<double>(d)) * Q;
          });
        },
    .law = law,
    .caveats =
        [](const Params&, Index, Index) {
          return std::vector<std::string>{
              "norms sqrt(d) estimate exp(-(|q|^2+|k|^2)/2) 0F1(; d/2; d |q+k|^2/4), which is below exp(q.k)"};
        },
});

}  // namespace
}  // namespace attnbench::orthogonal_fixed_norm_projection
