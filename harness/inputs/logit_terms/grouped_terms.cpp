#include "harness/inputs/logit_terms/grouped_terms.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace attnbench {

HeadData<double> with_terms(const Params& input, const InputRequest& request, const GroupedTerms& terms) {
  const Index d = request.d - terms.groups, first = request.nk - request.nq;
  if (d < 1)
    throw Misuse(
        fmt::format("{}: {} coordinates of its term do not fit into d={}; expected those of {} beside them, as in "
                    "-d {}",
                    input.spec(), terms.groups, request.d, inner_of(input).spec(), terms.groups + 64));
  const HeadData<double> inner = inner_head(input, request, request.nq, request.nk, d);
  const double unit = unit_coordinate(request.d);
  HeadData<double> head{Matrix<double>(request.nq, request.d), Matrix<double>::Zero(request.nk, request.d), inner.V};
  head.Q.leftCols(d) = inner.Q;
  head.K.leftCols(d) = inner.K;
  for (Index i = 0; i < request.nq; ++i)
    for (Index g = 0; g < terms.groups; ++g) head.Q(i, d + g) = terms.term(first + i, g) * unit;
  for (Index j = 0; j < request.nk; ++j) head.K(j, d + terms.group(j)) = unit;
  return head;
}

Parameter positions_parameter() {
  return Parameter::integer("positions", 256, "most tokens; each takes a coordinate", 1, 1 << 14);
}

InputLimits limits_by_positions(const Params& input) {
  const Index positions = input.integer("positions");
  InputLimits limits = wider_limits(input, [positions](Index d) { return d + positions; });
  for (Index* rows : {&limits.queries, &limits.keys}) *rows = *rows > 0 ? std::min(*rows, positions) : positions;
  return limits;
}

Parameter penalty_parameter() {
  return Parameter::real("penalty", 60, "that the logit of a masked key loses; 60 leaves it exp(-60) of its weight", 0,
                         1e6);
}

}  // namespace attnbench
