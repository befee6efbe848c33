// Simplex random features (SimRF). Reid et al., arXiv:2301.13856. In blocks of d,
//   omega_i = R_i s_i^T Q,   s_i = sqrt(d/(d-1)) (e_i - 1/d),   R_i independent chi_d,  Q Haar on O(d);
// s_1, ..., s_d are the corners of a simplex, with cosine -1/(d-1) between any two. Each row is marginally N(0, I_d).
//   E exp((omega_1 + omega_2).z) = sum_k (|z|^2/4)^k E[R^2k] / ((d/2)_k k!),  R^2 = R_1^2 + R_2^2 - 2 R_1 R_2 / (d-1)
// methods.md B. For positive features the error is below that of orthogonal rows. cos and cosh also depend on
// omega_1 - omega_2, of cosine +1/(d-1): at d = 4, |z|^2 = 4 a pair of hyperbolic summands has E X_1 X_2 = 0.682 mu^2,
// against 0.496 mu^2 with orthogonal rows.
#include "approximations/linear/projections/blocks.hpp"
#include "harness/theory/normal_rows.hpp"

namespace attnbench::simplex_projection {
namespace {

// At d = 1 there is one row and no angle: omega is chi_1 times a random sign.
Matrix<double> corners(Index d) {
  Matrix<double> S = Matrix<double>::Identity(d, d);
  if (d == 1) return S;
  const double count = static_cast<double>(d);
  S.array() -= 1 / count;
  return std::sqrt(count / (count - 1)) * S;
}

Matrix<double> draw_block(const Matrix<double>& directions, Generator& generator) {
  const Index d = directions.rows();
  Matrix<double> W = directions * haar_orthogonal(generator, d);
  const auto norms = chi(generator, d, d);
  for (Index i = 0; i < d; ++i) W.row(i) *= norms[static_cast<size_t>(i)];
  return W;
}

EnsembleLaw law(const Params&, Index d) {
  const double cosine = d > 1 ? -1 / static_cast<double>(d - 1) : 0;
  return {.moment = [d](double t, double alpha) { return normal_moment(d, t, alpha); },
          .dependent_pairs = [d](Index m) { return pairs_in_blocks(m, d); },
          .pair_moment = [d, cosine](double t, int sign,
                                     double alpha) { return chi_pair_moment(d, t, sign * cosine, alpha); },
          .block = d,
          .cosine = cosine};
}

const bool registered = add(ProjectionEntry{
    .text = {.name = "simplex",
             .summary = "the corners of a rotated simplex within blocks of d, chi_d norms",
             .formula = "omega_i = chi_d draw times sqrt(d/(d-1)) (e_i - 1/d)^T Q, Q Haar on O(d)",
             .reference = "Reid et al. 2023, arXiv:2301.13856",
             .cost = "O(m d^2) for the Haar matrices, once a draw"},
    .parameters = {},
    .draw =
        [](const Draw& draw, Index m, Index d) {
          Generator generator = draw.streams.stream("projection", "simplex", d, draw.head, draw.replicate);
          const Matrix<double> directions = corners(d);
          return stacked_blocks(m, d, d, [&] { return draw_block(directions, generator); });
        },
    .law = law,
    .caveats =
        [](const Params& params, Index, Index) {
          std::vector<std::string> all;
          if (params.has("features") && (params.text("features") == "hyperbolic" || params.text("features") == "trig"))
            all.push_back("simplex rows make " + params.text("features") +
                          " features worse than orthogonal rows do: they see -omega as well, at an acute angle");
          return all;
        },
});

}  // namespace
}  // namespace attnbench::simplex_projection
