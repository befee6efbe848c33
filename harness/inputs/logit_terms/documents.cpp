// A document mask: tokens see those of their own document only, as where several texts share a sequence.
//   s_ij = q_i.k_j - penalty [document of i is not that of j]                                           methods.md W5
// Krell et al. 2021, arXiv:2107.02027, section 3.2. Documents are consecutive and differ by one token in length at
// most. A document is one further coordinate.
#include <fmt/format.h>

#include "harness/inputs/logit_terms/grouped_terms.hpp"

namespace attnbench::documents_term {
namespace {

HeadData<double> draw(const Params& params, const InputRequest& request) {
  const Index count = params.integer("count"), n = request.nk;
  if (count > n)
    throw Misuse(fmt::format("{}: {} tokens for {} documents; expected a token each, as in count={}", params.spec(), n,
                             count, n));
  const double penalty = params.real("penalty");
  const auto document = [=](Index token) { return token * count / n; };
  return with_terms(params, request, {.groups = count, .group = document, .term = [=](Index position, Index group) {
                                        return document(position) == group ? 0 : -penalty;
                                      }});
}

const bool registered = add(InputEntry{
    .text = {.name = "documents",
             .summary = "another input whose tokens see those of their own document only",
             .formula = "s_ij = q_i.k_j - penalty [i and j are of different documents], as one more coordinate a "
                        "document",
             .reference = "Krell et al. 2021, arXiv:2107.02027, section 3.2",
             .cost = "that of the other input, and O(n count)",
             .family = "logit term",
             .departure = "a mask is minus infinity there; a finite penalty leaves exp(-penalty) of a weight"},
    .parameters = {inner_parameter(), Parameter::integer("count", 4, "documents of equal length", 1, 1 << 16),
                   penalty_parameter()},
    .draw = draw,
    .limits =
        [](const Params& params) {
          return wider_limits(params, [count = params.integer("count")](Index d) { return d + count; });
        },
    .content = inner_content,
});

}  // namespace
}  // namespace attnbench::documents_term
