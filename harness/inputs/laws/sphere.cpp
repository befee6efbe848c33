// Queries and keys uniform on a sphere: all norms are equal, so only angles differ.
//   |Q_i| = |K_j| = radius before the scaling by d^-1/4 (default sqrt(d), where a normal vector's norm concentrates)
//   V_ij ~ N(0, 1)
// Known answers: |q_i|^2 = |k_j|^2 = radius^2 d^-1/2 after the scaling. A logit is q.k = radius^2 d^-1/2 u with the
// cosine u of density proportional to (1 - u^2)^((d-3)/2): E u = 0, E u^2 = 1/d, so its variance is radius^4 / d^2 (1
// by default), and E exp(q.k) = 0F1(; d/2; radius^4 / (4 d)). With equal key norms the simplified Performer equals the
// Performer, and squared distances order keys as logits do.
#include <cmath>

#include "harness/inputs/laws/input_stream.hpp"

namespace attnbench::sphere_law {

namespace {

Matrix<double> with_norm(Matrix<double> X, double norm) {
  for (Index i = 0; i < X.rows(); ++i) X.row(i) *= norm / X.row(i).norm();
  return X;
}

HeadData<double> draw(const Params& params, const InputRequest& request) {
  const double given = params.real("radius");
  const double radius = given > 0 ? given : std::sqrt(static_cast<double>(request.d));
  return {with_norm(normal_rows(params, request, "Q", request.nq, request.d), radius),
          with_norm(normal_rows(params, request, "K", request.nk, request.d), radius),
          normal_rows(params, request, "V", request.nk, request.dv)};
}

const bool registered = add(InputEntry{
    .text = {.name = "sphere",
             .summary = "queries and keys uniform on a sphere",
             .formula = "|Q_i| = |K_j| = radius before the scaling by d^-1/4, V_ij ~ N(0, 1)",
             .reference = "",
             .cost = "O(n d) to draw",
             .family = "law"},
    .parameters = {Parameter::real("radius", 0, "norm of the rows of Q and K, unscaled; 0 means sqrt(d)", 0, 1e6)},
    .draw = draw,
});

}  // namespace

}  // namespace attnbench::sphere_law
