// Fastfood. Le, Sarlos and Smola 2013, Fastfood: approximating kernel expansions in loglinear time, eq. 7 and 8; also
// arXiv:1408.3060. Blocks of D rows, the first d columns of
//   D^-1/2 S H G P H B,   H = Hadamard (entries 1 and -1),  B = diagonal of random signs,  P = random permutation,
//   G = diagonal of normal variates,  S = diagonal of independent chi_D draws over the norm of G's diagonal,
// D = d padded to a power of two: x has zeros beyond d.
// A row of H G P H B / (D^1/2 |G|) is uniform on the unit sphere: the signs of H's row leave the direction g of G's
// diagonal uniform, and P, H D^-1/2 and B are orthogonal. Times chi_D it is N(0, I_D), so that every estimator stays
// unbiased, in padded dimensions too. Two rows of a block have the cosine of g o h_i and g o h_j, of mean 0 and
// variance 2 / (D + 2), and depend on one another in a way that prefers directions: no closed form of a variance is
// known here.
#include "approximations/linear/projections/fastfood.hpp"

#include <numeric>

#include "approximations/linear/projections/blocks.hpp"
#include "approximations/linear/projections/hadamard.hpp"
#include "harness/theory/normal_rows.hpp"

namespace attnbench {

Matrix<double> fastfood_block(const FastfoodFactors& factors) {
  const Index D = factors.signs.rows();
  Matrix<double> HB = factors.signs.col(0).asDiagonal();
  walsh_hadamard(HB);
  Matrix<double> W(D, D);
  for (Index i = 0; i < D; ++i) W.row(i) = factors.scales(i, 0) * HB.row(factors.order[static_cast<size_t>(i)]);
  walsh_hadamard(W);
  const double unit = 1 / (std::sqrt(static_cast<double>(D)) * factors.scales.norm());
  for (Index i = 0; i < D; ++i) W.row(i) *= factors.norms[static_cast<size_t>(i)] * unit;
  return W;
}

namespace {

Matrix<double> draw_block(Generator& generator, Index D) {
  FastfoodFactors factors{Matrix<double>(D, 1), std::vector<Index>(static_cast<size_t>(D)), {}, {}};
  for (Index i = 0; i < D; ++i) factors.signs(i, 0) = generator() >> 63 ? 1 : -1;
  std::iota(factors.order.begin(), factors.order.end(), Index{0});
  for (std::uint64_t left = factors.order.size(); left > 1; --left)  // Fisher and Yates
    std::swap(factors.order[left - 1], factors.order[generator() % left]);
  factors.scales = standard_normal(generator, D, 1);
  factors.norms = chi(generator, D, D);
  return fastfood_block(factors);
}

const bool registered = add(ProjectionEntry{
    .text = {.name = "fastfood",
             .printed = "Fastfood",
             .summary = "Fastfood: Hadamard matrices, signs, a permutation and normal variates, chi norms",
             .formula = "blocks of D rows of D^-1/2 S H G P H B, first d columns, D = d padded to a power of two",
             .reference = "Le, Sarlos and Smola 2013, arXiv:1408.3060",
             .cost = "O(m d log d) additions, once a draw; features are then computed as with any other W"},
    .parameters = {},
    .draw =
        [](const Draw& draw, Index m, Index d) {
          Generator generator = draw.streams.stream("projection", "fastfood", d, draw.head, draw.replicate);
          const Index D = padded_to_power_of_two(d);
          return stacked_blocks(m, d, D, [&] { return draw_block(generator, D); });
        },
    .law =
        [](const Params&, Index d) {
          return EnsembleLaw{
              .moment = [d](double t, double alpha) { return normal_moment(d, t, alpha); },
              .dependent_pairs = [D = padded_to_power_of_two(d)](Index m) { return pairs_in_blocks(m, D); }};
        },
});

}  // namespace
}  // namespace attnbench
