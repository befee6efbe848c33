#include "harness/inputs/logit_terms/inner_input.hpp"

#include <fmt/format.h>

#include <cmath>

namespace attnbench {

Parameter inner_parameter() {
  return Parameter::specs("input", "[gaussian]", "the input whose logits get the term", InputEntry::plural);
}

Params inner_of(const Params& input) {
  const auto all = input.all_nested("input");
  if (all.size() != 1)
    throw Misuse(
        fmt::format("{}: {} inputs; expected one, as in {}:[gaussian]", input.spec(), all.size(), input.name()));
  return all[0];
}

std::string inner_content(const Params& input) {
  const Params inner = inner_of(input);
  return find<InputEntry>(inner.name()).content(inner);
}

InputLimits wider_limits(const Params& input, const std::function<Index(Index)>& wider, Index more) {
  const Params inner = inner_of(input);
  InputLimits limits = find<InputEntry>(inner.name()).limits(inner);
  if (limits.d > 0) limits.d = wider(limits.d);
  if (limits.queries > 0) limits.queries += more;
  if (limits.keys > 0) limits.keys += more;
  limits.heads = 0;  // the parameter `head` is of the inner input
  limits.causal = limits.causal || find<InputEntry>(inner.name()).causal_by_default;
  return limits;
}

HeadData<double> inner_head(const Params& input, const InputRequest& request, Index nq, Index nk, Index d) {
  const Params inner = inner_of(input);
  if (nq < 1 || nk < 1 || d < 1)
    throw Misuse(fmt::format("{}: n={}, d={} leave {} tokens of width {} for {}; give larger sizes", input.spec(),
                             request.nk, request.d, nk, d, inner.spec()));
  InputRequest asked = request;
  asked.nq = nq;
  asked.nk = nk;
  asked.d = d;
  asked.needs = {};
  refuse_sizes(inner, nq, nk, d, request.dv);
  HeadData<double> head = find<InputEntry>(inner.name()).draw(inner, asked);
  const double factor = std::pow(static_cast<double>(request.d) / static_cast<double>(d), 0.25);
  head.Q *= factor;
  head.K *= factor;
  head.extra = {};
  return head;
}

double unit_coordinate(Index d) { return std::pow(static_cast<double>(d), 0.25); }

}  // namespace attnbench
