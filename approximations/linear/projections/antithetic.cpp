// Antithetic projection vectors: rows omega_1, -omega_1, omega_2, -omega_2, ..., omega_i the rows of `iid`. Each row is
// marginally N(0, I_d).
//   E exp(alpha (|omega|^2 + |-omega|^2) + (omega - omega).z) = (1 - 4 alpha)^(-d/2)                     methods.md A3,
//   B E exp(2 alpha |omega|^2 + (omega + omega).z) = (1 - 4 alpha)^(-d/2) exp(2 |z|^2 / (1 - 4 alpha))
// Positive features of 2m such rows equal the hyperbolic features of m iid rows, entry by entry. An even function of
// omega.x (trig, hyperbolic) has the same value for both vectors of a pair, so m rows count as m / 2.
#include "harness/core/projection.hpp"
#include "harness/theory/normal_rows.hpp"

namespace attnbench::antithetic_projection {
namespace {

Matrix<double> draw_rows(const Draw& draw, Index m, Index d) {
  const Matrix<double> half = find<ProjectionEntry>("iid").draw(draw, (m + 1) / 2, d);
  Matrix<double> W(m, d);
  for (Index i = 0; i < m; ++i) W.row(i) = (i % 2 == 0 ? 1 : -1) * half.row(i / 2);
  return W;
}

EnsembleLaw law(const Params&, Index d) {
  return {.moment = [d](double t, double alpha) { return normal_moment(d, t, alpha); },
          .dependent_pairs = [](Index m) { return static_cast<double>(m - m % 2); },
          .pair_moment = [d](double t, int sign,
                             double alpha) { return normal_moment(d, sign > 0 ? 0 : 4 * t, 2 * alpha); }};
}

const bool registered = add(ProjectionEntry{
    .text = {.name = "antithetic",
             .summary = "pairs of opposite standard normal vectors",
             .formula = "omega_1, -omega_1, omega_2, -omega_2, ..., omega_i ~ N(0, I_d) independent",
             .reference = "Hammersley and Morton 1956; Choromanski et al. 2020, arXiv:2009.14794, Lemma 1 (hyp+)",
             .cost = "m d / 2 normal variates"},
    .parameters = {},
    .draw = draw_rows,
    .law = law,
    .caveats =
        [](const Params& params, Index, Index) {
          std::vector<std::string> all;
          if (params.has("features") && (params.text("features") == "hyperbolic" || params.text("features") == "trig"))
            all.push_back(params.text("features") + " features are even in omega: antithetic rows count half");
          return all;
        },
});

}  // namespace
}  // namespace attnbench::antithetic_projection
