// Several heads in one call give what each gives alone. Each head has its own draw and its own numbers.
#include <fmt/format.h>

#include <limits>

#include "harness/claims/structural.hpp"
#include "harness/core/all_heads.hpp"
#include "harness/core/needs.hpp"

namespace attnbench {

namespace {

constexpr const char* claim = "heads";

void compare_with_each(const Subject& subject, const Probe& one,
                       const std::vector<std::unique_ptr<Approximation<double>>>& methods,
                       const AllHeads<double>& together, const std::vector<HeadData<double>>& heads, const char* how,
                       std::uint64_t seed, ClaimResults& results) {
  std::vector<Matrix<double>> outputs(
      heads.size(), Matrix<double>::Constant(one.shape.nq, one.shape.dv, std::numeric_limits<double>::quiet_NaN()));
  Context context;
  together.attend(heads, one.shape.mask, context, outputs);
  const bool non_negative = subject.claims(subject.params, one.shape).non_negative;
  for (size_t h = 0; h < heads.size(); ++h) {
    const Probe alone{one.shape, heads[h]};
    results.push_back(compare_rows(claim, fmt::format("head {} of {} {}, {}", h, heads.size(), how, one.name()),
                                   outputs[h], attended(*methods[h], heads[h], one.shape.mask),
                                   row_conditions(*methods[h], alone, non_negative, seed), size_of(heads[h].V),
                                   double_tolerance));
  }
}

}  // namespace

ClaimResults test_heads(const Subject& subject, const Probes& probes, std::uint64_t seed) {
  constexpr Index count = 3;
  ClaimResults results;
  for (const Probe& one : probes) {
    const Drawing drawing(subject, subject.params, one.shape, seed);
    std::vector<std::unique_ptr<Approximation<double>>> methods;
    for (Index h = 0; h < count; ++h) methods.push_back(drawing.draw_for<double>(seed, h, 0));
    const auto together = all_heads<double>(methods);
    if (!together) return {skipped(claim, "it takes one head a call")};
    if (subject.claims(subject.params, one.shape).mixes_heads)
      return {skipped(claim, "it says that it mixes heads, so that none equals what it gives alone")};
    const HeadData<double>& head = one.head;
    const std::vector<HeadData<double>> heads{
        head,
        {-head.Q, head.K, 2 * head.V, drawn_extras(subject.params, one.shape, seed + 1)},
        {4 * head.Q, -4 * head.K, -head.V, drawn_extras(subject.params, one.shape, seed + 2)}};  // of another size
    compare_with_each(subject, one, methods, *together, heads, "in one call", seed, results);
    methods.push_back(drawing.draw_for<double>(seed, count, 0));
    const HeadData<double>& other = heads[1];
    compare_with_each(subject, one, methods, *all_heads<double>(methods, 2),
                      {head,
                       {-head.Q, head.K, head.V, head.extra},
                       {2 * head.Q, other.K, other.V, other.extra},
                       {other.Q, other.K, other.V, other.extra}},
                      "of 2 groups that share keys", seed, results);
  }
  return results;
}

}  // namespace attnbench
