// Block-orthogonal projection vectors: in blocks of d, the rows of a Haar-distributed orthogonal matrix times
// independent chi_d norms; the last block may be partial. Choromanski et al., arXiv:2009.14794, section 2.4.
// Every row is marginally N(0, I_d), so every estimator stays unbiased; rows of one block are orthogonal, so
//   E exp((omega_1 + omega_2).z) = 1F1(d; d/2; |z|^2/2) < exp(|z|^2)                                   methods.md B
// Published libraries leave out the sign fix that makes QR's Q Haar-distributed (its first entry is then never
// positive), or take the norms of the Gaussian rows that Q came from, on which Q depends.
#include "approximations/linear/projections/blocks.hpp"
#include "harness/theory/normal_rows.hpp"

namespace attnbench::orthogonal_projection {
namespace {

Matrix<double> draw_block(const Params& params, Generator& generator, Index d) {
  const auto& norms = params.text("norms");
  const bool published = !params.flag("sign_fix") || norms == "same-block";  // from the QR factor of a Gaussian block
  Matrix<double> W = published ? standard_normal(generator, d, d) : haar_orthogonal(generator, d);
  std::vector<double> radii = chi(generator, d, d);
  if (norms == "sqrt-d") radii.assign(radii.size(), std::sqrt(static_cast<double>(d)));
  if (norms == "same-block")
    for (Index i = 0; i < d; ++i) radii[static_cast<size_t>(i)] = W.row(i).norm();
  if (published) W = params.flag("sign_fix") ? haar_factor(W) : raw_qr_factor(W);
  for (Index i = 0; i < d; ++i) W.row(i) *= radii[static_cast<size_t>(i)];
  return W;
}

const bool registered = add(ProjectionEntry{
    .text = {.name = "orthogonal",
             .summary = "orthogonal within blocks of d, chi_d norms, Haar (sign-fixed)",
             .formula = "rows of Q times chi_d draws, Q Haar on O(d), one Q for each block of d rows",
             .reference = "Choromanski et al. 2020, arXiv:2009.14794, section 2.4; Mezzadri 2007 for the sign fix",
             .cost = "O(m d^2) for the Haar matrices, once a draw"},
    .parameters =
        {Parameter::flag(
             "sign_fix", true,
             "false: Q as Householder QR leaves it; positive features are biased by -15 % of K(q, k) at d = 4, "
             "-12 % at 16 and -6 % at 64 for q + k along 1 of length 0.8")
             .as_published(),
         Parameter::choice(
             "norms", "chi",
             "same-block: the norms of the Gaussian rows that Q was made of, biased by +9 % at d = 4 for "
             "q + k along e1 of length 0.8, not along 1; sqrt-d: all norms sqrt(d), a kernel below exp(q.k), "
             "by 6 % for entries "
             "of N(0, 1/4) at d = 64",
             {"chi", "same-block", "sqrt-d"})
             .as_published()},
    .draw =
        [](const Draw& draw, Index m, Index d) {
          Generator generator = orthogonal_stream(draw, d);
          return stacked_blocks(m, d, d, [&] { return draw_block(draw.params, generator, d); });
        },
    .law =
        [](const Params&, Index d) {
          return EnsembleLaw{
              .moment = [d](double t, double alpha) { return normal_moment(d, t, alpha); },
              .dependent_pairs = [d](Index m) { return pairs_in_blocks(m, d); },
              .pair_moment = [d](double t, int, double alpha) { return chi_pair_moment(d, t, 0, alpha); },
              .block = d,
              .cosine = 0};
        },
});

}  // namespace
}  // namespace attnbench::orthogonal_projection
