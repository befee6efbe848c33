// One pair of vectors, chosen by its geometry: every query is q and every key is k. The closed forms of random features
// depend on lengths and angles, so this input measures them at chosen ones.
//   q = length (cos(angle/2) u + sin(angle/2) v),  k = length (cos(angle/2) u - sin(angle/2) v)   after the scaling by
//   d^-1/4,  u and v orthonormal, u the direction of q + k;  V_ij ~ N(0, 1)
//   direction: random, (u, v) Haar distributed, one draw for the head; ones, u = 1/sqrt(d) in every coordinate and v in
//   the plane of u and e1; axis, u = e1 and v = e2
// The calibration head has pairs of the same geometry, each in its own random plane. A fitted method thus learns
// lengths and angle, but not where the measured pair points.
// Known answers: |q| = |k| = length, q.k = length^2 cos(angle), |q + k| = 2 length cos(angle/2) and |q - k| = 2 length
// |sin(angle/2)|; all logits are equal, so attention is the uniform average. In one dimension q = k or q = -k.
// Estimators whose law is not invariant under rotations (QR factors without the sign fix, Hadamard products) differ
// between `axis` and `ones`.
#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "harness/inputs/laws/input_stream.hpp"

namespace attnbench::pair_law {

namespace {

using Row = Eigen::Matrix<double, 1, Eigen::Dynamic>;

struct Plane {
  Row u, v;  // orthonormal; v is zero in one dimension
};

Plane orthonormal(Row u, Row v) {
  u.normalize();
  if (u.size() == 1) return {u, Row::Zero(1)};
  v -= v.dot(u) * u;
  v -= v.dot(u) * u;  // again, to remove the rounding left when v was nearly u
  return {u, v.normalized()};
}

// The plane of the measured pair.
Plane plane(const Params& params, const InputRequest& request) {
  const auto& direction = params.text("direction");
  const Row e1 = Row::Unit(request.d, 0), e2 = Row::Unit(request.d, std::min<Index>(1, request.d - 1));
  if (direction == "ones") return orthonormal(Row::Ones(request.d), e1);
  if (direction == "axis") return orthonormal(e1, e2);
  Generator structure = shared_stream(params, request, "plane");
  const Matrix<double> two = standard_normal(structure, 2, request.d);
  return orthonormal(two.row(0), two.row(1));
}

HeadData<double> draw(const Params& params, const InputRequest& request) {
  const double angle = params.real("angle"), half = angle / 2;
  const bool opposite = std::abs(std::abs(angle) - std::numbers::pi) < 1e-9;
  if (request.d == 1 && angle != 0 && !opposite)
    throw Misuse(fmt::format("{}: in one dimension the angle of two vectors is 0 or pi; give one of these or d >= 2",
                             params.spec()));
  const double length = params.real("length") * std::pow(static_cast<double>(request.d), 0.25);
  HeadData<double> head{Matrix<double>(request.nq, request.d), Matrix<double>(request.nk, request.d),
                        normal_rows(params, request, "V", request.nk, request.dv)};
  const bool one_plane = request.purpose == Purpose::measured;
  const Plane measured = plane(params, request);
  const Index rows = std::max(request.nq, request.nk);
  const Matrix<double> normal = normal_rows(params, request, "planes", one_plane ? 0 : 2 * rows, request.d);
  for (Index i = 0; i < rows; ++i) {
    const auto [u, v] = one_plane ? measured : orthonormal(normal.row(2 * i), normal.row(2 * i + 1));
    // In one dimension only u exists, and an angle of pi is a change of sign.
    const Row middle = request.d == 1 ? u : Row(std::cos(half) * u), across = std::sin(half) * v;
    if (i < request.nq) head.Q.row(i) = length * (middle + across);
    if (i < request.nk) head.K.row(i) = length * (request.d == 1 && opposite ? Row(-middle) : Row(middle - across));
  }
  return head;
}

const bool registered = add(InputEntry{
    .text = {.name = "pair",
             .summary = "every query is q and every key is k, of chosen length, angle and direction",
             .formula = "|q| = |k| = length after the scaling by d^-1/4, q.k = length^2 cos(angle); V_ij ~ N(0, 1)",
             .reference = "Choromanski et al. 2020, arXiv:2009.14794, Fig. 2",
             .cost = "O(n d) to draw",
             .family = "law"},
    .parameters = {Parameter::real("length", 1, "of q and of k, as methods see them", 0, 1e6),
                   Parameter::real("angle", 0, "between q and k, in radians", -std::numbers::pi, std::numbers::pi),
                   Parameter::choice("direction", "random", "where q + k points: anywhere, (1, ..., 1) or e1",
                                     {"random", "ones", "axis"})},
    .draw = draw,
});

}  // namespace

}  // namespace attnbench::pair_law
