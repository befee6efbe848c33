// Queries and keys without a negative entry.
//   Q_ij = scale |g|, K_ij = scale |h| for independent standard normal g and h; V_ij ~ N(0, 1)
// Known answers: E Q_ij = scale (2 / pi)^1/2, E Q_ij^2 = scale^2, E q.k = scale^2 (2 / pi) d^1/2 after the scaling by
// d^-1/4 each. ReLU leaves such tokens as they are: no row of a ReLU kernel is without weight, as half the channels of
// `gaussian` are.
#include "harness/inputs/laws/input_stream.hpp"

namespace attnbench {

namespace {

HeadData<double> draw(const Params& params, const InputRequest& request) {
  const double scale = params.real("scale");
  HeadData<double> head{normal_rows(params, request, "Q", request.nq, request.d),
                        normal_rows(params, request, "K", request.nk, request.d),
                        normal_rows(params, request, "V", request.nk, request.dv)};
  head.Q = scale * head.Q.cwiseAbs();
  head.K = scale * head.K.cwiseAbs();
  return head;
}

const bool registered = add(InputEntry{
    .text = {.name = "half-normal",
             .summary = "independent queries and keys whose entries are magnitudes of normal numbers",
             .formula = "Q_ij, K_ij ~ |N(0, scale^2)|, V_ij ~ N(0, 1)",
             .reference = "none: the law on which ReLU kernels have no empty row",
             .cost = "O(n d) to draw",
             .family = "law"},
    .parameters = {Parameter::real("scale", 1, "root mean square of the entries of Q and K", 0, 1e6)},
    .draw = draw,
});

}  // namespace

}  // namespace attnbench
