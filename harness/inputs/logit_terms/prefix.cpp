// A prefix mask: the first tokens see each other, and later ones what comes before them. For calls without a mask.
//   s_ij = q_i.k_j - penalty [j > i and j >= tokens of the prefix]                                      methods.md W6
// Raffel et al. 2020, arXiv:1910.10683, section 3.2.1. Which keys a query sees is not a product of few coordinates:
// each token is one.
#include "harness/inputs/logit_terms/grouped_terms.hpp"

namespace attnbench::prefix_term {
namespace {

HeadData<double> draw(const Params& params, const InputRequest& request) {
  const Index prefix = params.integer("prefix");
  const double penalty = params.real("penalty");
  return with_terms(
      params, request,
      {.groups = params.integer("positions"),
       .group = [](Index key) { return key; },
       .term = [=](Index position, Index key) { return key > position && key >= prefix ? -penalty : 0; }});
}

const bool registered = add(InputEntry{
    .text = {.name = "prefix",
             .summary = "another input whose first tokens see each other, and every other token what comes before it",
             .formula = "s_ij = q_i.k_j - penalty [j > i and j is not of the prefix], as one more coordinate a token",
             .reference = "Raffel et al. 2020, arXiv:1910.10683, section 3.2.1",
             .cost = "that of the other input, and O(n positions)",
             .family = "logit term",
             .departure =
                 "a mask is minus infinity there; a finite penalty leaves exp(-penalty) of a weight; meant for "
                 "calls without a mask, because a causal one hides the prefix as well"},
    .parameters = {inner_parameter(), positions_parameter(),
                   Parameter::integer("prefix", 16, "tokens that see each other", 0), penalty_parameter()},
    .draw = draw,
    .limits = limits_by_positions,
    .content = inner_content,
});

}  // namespace
}  // namespace attnbench::prefix_term
