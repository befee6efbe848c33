// ALiBi: a penalty that grows with the distance from the query to an earlier key.
//   s_ij = q_i.k_j - slope (i - j),  j <= i                                                             methods.md W1
// Press, Smith and Lewis 2021, arXiv:2108.12409, section 3. Head h of H heads has the slope 2^(-8 h / H) there.
// slope i is common to a row, and softmax does not see it. The rest is a product of a number of the query and one
// of the key: one further coordinate. It is counted from the last key, so that no weight exp(s) overflows, and the
// largest coordinates of q and k are equal: random features see |q|^2 and |k|^2, and other splits make one of them
// larger.
#include <cmath>

#include "harness/inputs/logit_terms/inner_input.hpp"

namespace attnbench::alibi_term {
namespace {

HeadData<double> draw(const Params& params, const InputRequest& request) {
  const HeadData<double> inner = inner_head(params, request, request.nq, request.nk, request.d - 1);
  const double last = static_cast<double>(request.nk - 1), largest = std::sqrt(params.real("slope") * last),
               unit = unit_coordinate(request.d);
  HeadData<double> head{Matrix<double>(request.nq, request.d), Matrix<double>(request.nk, request.d), inner.V};
  head.Q.leftCols(request.d - 1) = inner.Q;
  head.K.leftCols(request.d - 1) = inner.K;
  head.Q.rightCols(1).setConstant(largest * unit);
  for (Index j = 0; j < request.nk; ++j)
    head.K(j, request.d - 1) = last > 0 ? -largest * (1 - static_cast<double>(j) / last) * unit : 0;
  return head;
}

const bool registered = add(InputEntry{
    .text = {.name = "alibi",
             .summary = "another input with a penalty on the logit that grows with the distance to the key (ALiBi)",
             .formula = "s_ij = q_i.k_j - slope (i - j) for j <= i, as one more coordinate of q and k",
             .reference = "Press et al. 2021, arXiv:2108.12409, section 3",
             .cost = "that of the other input",
             .family = "logit term",
             .departure = "meant for causal masks: without one, later keys gain slope (j - i)"},
    .parameters = {inner_parameter(),
                   Parameter::real("slope", 0.0625, "of the penalty; head h of H has 2^(-8 h / H)", 0, 1e6)},
    .draw = draw,
    .limits =
        [](const Params& params) {
          InputLimits limits = wider_limits(params, [](Index d) { return d + 1; });
          limits.causal = true;
          return limits;
        },
    .content = inner_content,
});

}  // namespace
}  // namespace attnbench::alibi_term
