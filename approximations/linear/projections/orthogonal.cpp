// Block-orthogonal projection vectors: in blocks of d, the rows of a Haar-distributed orthogonal matrix times
// independent chi_d norms; the last block may be partial. Choromanski et al., arXiv:2009.14794, section 2.4.
// Every row is marginally N(0, I_d), so every estimator stays unbiased; rows of one block are orthogonal, so
//   E exp((omega_1 + omega_2).z) = 1F1(d; d/2; |z|^2/2) < exp(|z|^2)                                   methods.md B
#include <cmath>

#include "harness/core/projection.hpp"
#include "harness/theory/special_functions.hpp"

namespace attnbench {
namespace {

class OrthogonalLaw final : public EnsembleLaw {
 public:
  explicit OrthogonalLaw(Index d) : d_(d) {}

  double moment(double t) const override { return std::exp(t / 2); }
  double pair_moment(double t, int) const override {
    if (d_ == 1) return moment(t) * moment(t);  // blocks of one row: nothing is orthogonal to it
    const double d = static_cast<double>(d_);
    return kummer(d, d / 2, t / 2);
  }
  double dependent_pairs(Index m) const override {
    const auto pairs = [](Index rows) { return static_cast<double>(rows) * static_cast<double>(rows - 1); };
    return static_cast<double>(m / d_) * pairs(d_) + pairs(m % d_);
  }

 private:
  Index d_;
};

Matrix<double> draw_rows(const Draw& draw, Index m, Index d) {
  Matrix<double> W(m, d);
  for (Index block = 0; block * d < m; ++block) {
    auto directions =
        draw.streams.stream("projection", "orthogonal", "directions", d, draw.head, draw.replicate, block);
    auto radii = draw.streams.stream("projection", "orthogonal", "norms", d, draw.head, draw.replicate, block);
    const Matrix<double> Q = haar_orthogonal(directions, d);
    const auto norms = chi(radii, d, d);
    for (Index i = 0; i < std::min(d, m - block * d); ++i)
      W.row(block * d + i) = norms[static_cast<size_t>(i)] * Q.row(i);
  }
  return W;
}

const bool registered = add(ProjectionEntry{
    .text = {.name = "orthogonal",
             .summary = "orthogonal within blocks of d, chi_d norms, Haar (sign-fixed)",
             .formula = "rows of Q times chi_d draws, Q Haar on O(d), one Q for each block of d rows",
             .reference = "Choromanski et al. 2020, arXiv:2009.14794, section 2.4; Mezzadri 2007 for the sign fix",
             .cost = "O(m d^2) for the QR factors, once a draw"},
    .parameters = {},
    .draw = draw_rows,
    .law = [](const Params&, Index d) { return std::make_shared<const OrthogonalLaw>(d); },
});

}  // namespace
}  // namespace attnbench
