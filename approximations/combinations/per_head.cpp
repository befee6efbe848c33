// A different method for each head. methods.md F; source 003 ("different heads, different patterns"); Child et al.,
// arXiv:1904.10509, section 4.2, where one head has a window and the next a column.
//   head h is the method of spec h mod count
// A head behaves exactly as its method does: same draw, same capabilities, same second paths. The whole claims only the
// properties that all specs claim; cost is the mean over heads, memory that of the largest.
#include <algorithm>

#include "harness/core/approximation.hpp"

namespace attnbench::per_head_method {
namespace {

template <class T>
std::unique_ptr<Approximation<T>> of_head(const Draw& draw) {
  const auto specs = draw.params.all_nested("heads");
  const Params& own = specs[static_cast<size_t>(draw.head) % specs.size()];
  return make_approximation<T>(draw.with(own));
}

Claims claims_of(const Params& params, const Shape& shape) {
  return find<MethodEntry>(params.name()).claims(params, shape);
}

Claims all_of(const Params& params, const Shape& shape) {
  const auto specs = params.all_nested("heads");
  Claims all = claims_of(specs.front(), shape);
  for (size_t s = 1; s < specs.size(); ++s) {
    const Claims one = claims_of(specs[s], shape);
    all.row_stochastic &= one.row_stochastic;
    all.non_negative &= one.non_negative;
    all.permutation_equivariant &= one.permutation_equivariant;
    all.causal_exact &= one.causal_exact;
    all.equal_keys &= one.equal_keys;
    all.scales_with_V = (all.linear_in_V || all.scales_with_V) && (one.linear_in_V || one.scales_with_V);
    all.linear_in_V &= one.linear_in_V;
    if (all.no_form.empty()) all.no_form = one.no_form;
    if (all.no_attention_matrix.empty()) all.no_attention_matrix = one.no_attention_matrix;
    all.rank_at_most = all.rank_at_most && one.rank_at_most
                           ? std::optional(std::max(*all.rank_at_most, *one.rank_at_most))
                           : std::nullopt;
  }
  all.exact_when.clear();  // it would name parameters of the inner specs, which per-head does not have
  return all;
}

const bool registered = add(MethodEntry{
    .text = {.name = "per-head",
             .printed = "By head",
             .summary = "heads with methods of their own, in turn",
             .formula = "head h is spec h mod count",
             .reference = "Child et al. 2019, arXiv:1904.10509, section 4.2; Lee 2022, lecture",
             .cost = "that of each head's method",
             .family = "sparse"},
    .parameters = {Parameter::specs("heads", "[dilated],[local]", "what head 0, 1, ... are, in turn", "methods")},
    .f32 = of_head<float>,
    .f64 = of_head<double>,
    .claims = all_of,
    .memory =
        [](const Params& params, const Shape& shape) {
          double largest = 0;
          for (const Params& one : params.all_nested("heads"))
            if (const auto& memory = find<MethodEntry>(one.name()).memory)
              largest = std::max(largest, memory(one, shape));
          return largest;
        },
    .cost =
        [](const Params& params, const Shape& shape) {
          const auto specs = params.all_nested("heads");
          Work mean;
          for (const Params& one : specs) {
            const Work work = find<MethodEntry>(one.name()).cost(one, shape);
            mean.flops += work.flops / static_cast<double>(specs.size());
            mean.exps += work.exps / static_cast<double>(specs.size());
          }
          return mean;
        },
    .fitted =
        [](const Params& params) {
          const auto specs = params.all_nested("heads");
          return std::any_of(specs.begin(), specs.end(),
                             [](const Params& one) { return find<MethodEntry>(one.name()).fitted(one); });
        },
    .check =
        [](const Params& params) {
          for (const Params& one : params.all_nested("heads")) find<MethodEntry>(one.name()).check(one);
        },
    .caveats =
        [](const Params& params, const Shape& shape) {
          std::vector<std::string> all;
          for (const Params& one : params.all_nested("heads"))
            for (auto& caveat : find<MethodEntry>(one.name()).caveats(one, shape)) all.push_back(std::move(caveat));
          return all;
        },
});

}  // namespace
}  // namespace attnbench::per_head_method
