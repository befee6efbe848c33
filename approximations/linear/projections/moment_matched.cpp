// Moment-matched projection vectors: m normal vectors, moved and whitened so that their own mean is 0 and their own
// covariance I. Shen, Yang and Wang 2017; Spectraformer, arXiv:2405.15310.
//   W = (G - mean of its rows) L^-T,  G the m x d rows of `iid`,  L L^T = (G - mean)^T (G - mean) / m
// W / sqrt(m) is the orthogonal factor of the QR decomposition (R_ii > 0) of the centred G: a uniform d-frame in the
// m - 1 dimensions of the vectors whose entries sum to 0. Hence, with D = m - 1, a row is the first d coordinates of a
// uniform vector of norm sqrt(D) in D dimensions, and for two rows                                     methods.md B9
//   E exp(omega.z)                = 0F1(; D/2; D |z|^2/4)  =  exp(|z|^2/2) (1 - |z|^4 / (4 D) + O(D^-2))
//   E exp((omega_1 + omega_2).z)  = 0F1(; D/2; (2m - 4) |z|^2/4),   with a minus 0F1(; D/2; 2m |z|^2/4)
// The kernel is therefore biased downwards, by O(1/m), at every m. m >= d + 1: fewer vectors have a singular
// covariance. At m = d + 1 the rows are the corners of a simplex of norm sqrt(d), and nothing is random but its turn.
#include <Eigen/QR>

#include "approximations/linear/features/random_features.hpp"
#include "approximations/linear/projections/sphere.hpp"

namespace attnbench::moment_matched_projection {
namespace {

Matrix<double> draw_rows(const Draw& draw, Index m, Index d) {
  if (m <= d)
    throw Skip("projection=moment-matched: m = " + std::to_string(m) +
               " vectors have a singular covariance in d = " + std::to_string(d) +
               " dimensions; expected m >= d + 1: use m=" + std::to_string(d + 1) + " or projection=iid");
  Matrix<double> G = find<ProjectionEntry>("iid").draw(draw, m, d);
  G.rowwise() -= G.colwise().mean().eval();
  const Eigen::HouseholderQR<Eigen::MatrixXd> qr(G);
  Matrix<double> W = qr.householderQ() * Eigen::MatrixXd::Identity(m, d);
  for (Index l = 0; l < d; ++l) W.col(l) *= (qr.matrixQR()(l, l) < 0 ? -1 : 1) * std::sqrt(static_cast<double>(m));
  return W;
}

EnsembleLaw law(const Params& params, Index d) {
  // Without a number of vectors nothing is known: the law of a row depends on it.
  if (!params.has("m")) return {.gaussian = false, .nested = false};
  const double m = static_cast<double>(projection_vectors(params)), D = m - 1, dimensions = static_cast<double>(d);
  EnsembleLaw known{
      .moment = [=](double t, double alpha) { return sphere_moment(dimensions, D, t, alpha); },
      .gaussian = false,
      .dependent_pairs = [](Index count) { return static_cast<double>(count) * static_cast<double>(count - 1); },
      .nested = false,
      .least_m = d + 1};
  // OPRF tilts by exp(alpha |omega|^2), and no closed form of a tilted pair is known.
  if (!params.has("features") || params.text("features") != "oprf")
    known.pair_moment = [=](double t, int sign, double) {
      return hypergeometric_0f1(D / 2, (sign > 0 ? 2 * m - 4 : 2 * m) * t / 4);
    };
  return known;
}

const bool registered = add(ProjectionEntry{
    .text = {.name = "moment-matched",
             .printed = "moment-matched",
             .summary = "normal vectors whitened to mean 0 and covariance I: estimates a kernel below exp(q.k)",
             .formula = "W = (G - mean) L^-T, L L^T = (G - mean)^T (G - mean) / m, G normal, m >= d + 1",
             .reference = "Shen, Yang and Wang 2017, Random features for shift-invariant kernels with moment matching; "
                          "Nguyen et al. 2024, arXiv:2405.15310",
             .cost = "m d normal variates and O(m d^2) for the whitening, once a draw"},
    .parameters = {},
    .draw = draw_rows,
    .law = law,
    .caveats =
        [](const Params&, Index m, Index d) {
          std::vector<std::string> all{
              "moment-matched rows estimate exp(-(|q|^2+|k|^2)/2) 0F1(; (m-1)/2; (m-1) |q+k|^2/4), which is below "
              "exp(q.k) by a share of |q+k|^4 / (4 (m-1))"};
          if (m < 2 * d)
            all.push_back("m = " + std::to_string(m) +
                          " is below 2 d: matched moments leave the rows little freedom, "
                          "and the kernel is near that of norms sqrt(d)");
          return all;
        },
});

}  // namespace
}  // namespace attnbench::moment_matched_projection
