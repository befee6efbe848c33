// One pair of vectors, chosen by its geometry: every query is q and every key is k. The closed forms of random features
// are functions of lengths and angles, and are measured where they are wanted.
//   q = length (cos(angle/2) u + sin(angle/2) v),  k = length (cos(angle/2) u - sin(angle/2) v)   after the scaling by
//   d^-1/4,  u and v orthonormal, u the direction of q + k;  V_ij ~ N(0, 1)
//   direction: random, (u, v) Haar distributed, one draw for the head (its calibration text included); ones, u =
//   1/sqrt(d) in every coordinate and v in the plane of u and e1; axis, u = e1 and v = e2
// Known answers: |q| = |k| = length, q.k = length^2 cos(angle), |q + k| = 2 length cos(angle/2) and |q - k| = 2 length
// |sin(angle/2)|; all logits are equal, so attention is the uniform average. In one dimension q = k or q = -k.
// Estimators whose law is not invariant under rotations (QR factors without the sign fix, Hadamard products) differ
// between `axis` and `ones`.
#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "harness/inputs/laws/input_stream.hpp"

namespace attnbench {

namespace {

using Row = Eigen::Matrix<double, 1, Eigen::Dynamic>;

// The plane of q and k: u, then v.
std::pair<Row, Row> plane(const Params& params, const InputRequest& request) {
  const auto& direction = params.text("direction");
  Row u = Row::Unit(request.d, 0), v = Row::Unit(request.d, std::min<Index>(1, request.d - 1));
  if (direction == "random") {
    Generator structure = shared_stream(params, request, "plane");
    const Matrix<double> two = standard_normal(structure, 2, request.d);
    u = two.row(0);
    v = two.row(1);
  } else if (direction == "ones") {
    u = Row::Ones(request.d);
    v = Row::Unit(request.d, 0);
  }
  u.normalize();
  if (request.d == 1) return {u, Row::Zero(1)};
  v -= v.dot(u) * u;
  v -= v.dot(u) * u;  // once more for what rounding left when v was nearly u
  return {u, v.normalized()};
}

HeadData<double> draw(const Params& params, const InputRequest& request) {
  const double angle = params.real("angle"), half = angle / 2;
  const bool opposite = std::abs(std::abs(angle) - std::numbers::pi) < 1e-9;
  if (request.d == 1 && angle != 0 && !opposite)
    throw Misuse(fmt::format("{}: in one dimension the angle of two vectors is 0 or pi; give one of these or d >= 2",
                             params.spec()));
  const double length = params.real("length") * std::pow(static_cast<double>(request.d), 0.25);
  const auto [u, v] = plane(params, request);
  Row q = length * (std::cos(half) * u + std::sin(half) * v), k = length * (std::cos(half) * u - std::sin(half) * v);
  if (request.d == 1) {
    q = length * u;
    k = opposite ? Row(-q) : q;
  }
  return {q.replicate(request.nq, 1), k.replicate(request.nk, 1),
          normal_rows(params, request, "V", request.nk, request.dv)};
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

}  // namespace attnbench
