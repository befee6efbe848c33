// Queries and keys in one subspace of dimension r = min(rank, d).
//   Q = scale sqrt(d/r) G B, K = scale sqrt(d/r) H B,  B r x d with orthonormal rows, Haar distributed, one draw for
//   the head (its calibration text included);  G, H and V standard normal
// Known answers: the matrix of logits has rank min(r, nq, nk); E |Q_i|^2 = scale^2 d as for `gaussian`; a logit is
// q.k = scale^2 sqrt(d) (g.h) / r, with mean 0 and variance scale^4 d / r. rank >= d: the law is that of `gaussian`.
#include <algorithm>
#include <cmath>

#include "harness/inputs/laws/input_stream.hpp"
#include "harness/machine/memory_limit.hpp"

namespace attnbench::low_rank_law {

namespace {

// Row by row, because a row must not depend on the number of rows, and a blocked product may round its last rows
// differently.
Matrix<double> combinations(const Matrix<double>& weights, const Matrix<double>& B, double scale) {
  Matrix<double> X = Matrix<double>::Zero(weights.rows(), B.cols());
  for (Index i = 0; i < weights.rows(); ++i)
    for (Index a = 0; a < weights.cols(); ++a) X.row(i) += scale * weights(i, a) * B.row(a);
  return X;
}

HeadData<double> draw(const Params& params, const InputRequest& request) {
  const Index rank = std::min(params.integer("rank"), request.d);
  const double scale = params.real("scale") * std::sqrt(static_cast<double>(request.d) / static_cast<double>(rank));
  const double square = static_cast<double>(request.d) * static_cast<double>(request.d);
  refuse_beyond_memory(4 * sizeof(double) * square, params.spec() + ": drawing the subspace", "give a smaller d");
  Generator structure = shared_stream(params, request, "subspace");
  const Matrix<double> B = haar_orthogonal(structure, request.d).topRows(rank);
  return {combinations(normal_rows(params, request, "Q", request.nq, rank), B, scale),
          combinations(normal_rows(params, request, "K", request.nk, rank), B, scale),
          normal_rows(params, request, "V", request.nk, request.dv)};
}

const bool registered = add(InputEntry{
    .text = {.name = "low-rank",
             .summary = "queries and keys in one random subspace",
             .formula = "Q = scale sqrt(d/r) G B, K likewise, B r x d with orthonormal rows, r = min(rank, d); V_ij ~ "
                        "N(0, 1)",
             .reference = "",
             .cost = "O(n d rank + d^3) to draw",
             .family = "law"},
    .parameters = {Parameter::integer("rank", 8, "dimension of the subspace; d if that is less", 1, 1e6),
                   Parameter::real("scale", 1, "root mean square of the entries of Q and K", 0, 1e6)},
    .draw = draw,
});

}  // namespace

}  // namespace attnbench::low_rank_law
