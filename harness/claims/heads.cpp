// Several heads in one call give what each gives alone. Each head has its own draw and its own numbers. Where heads
// depend on each other, the call gives what a transcription for all of them gives.
#include <fmt/format.h>

#include <limits>

#include "harness/claims/structural.hpp"
#include "harness/core/all_heads.hpp"
#include "harness/core/needs.hpp"

namespace attnbench {

namespace {

constexpr const char* claim = "heads";

using Methods = std::vector<std::unique_ptr<Approximation<double>>>;

std::vector<Matrix<double>> attended_together(const Methods& methods, Index key_heads,
                                              const std::vector<HeadData<double>>& heads, Mask mask) {
  Context context;
  std::vector<Matrix<double>> outputs(heads.size(), Matrix<double>::Constant(heads[0].Q.rows(), heads[0].V.cols(),
                                                                             std::numeric_limits<double>::quiet_NaN()));
  all_heads<double>(methods, key_heads)->attend(heads, mask, context, outputs);
  return outputs;
}

void compare_with_each(const Subject& subject, const Probe& one, const Methods& methods, Index key_heads,
                       const std::vector<HeadData<double>>& heads, const char* how, std::uint64_t seed,
                       ClaimResults& results) {
  const auto outputs = attended_together(methods, key_heads, heads, one.shape.mask);
  const bool non_negative = subject.claims(subject.params, one.shape).non_negative;
  for (size_t h = 0; h < heads.size(); ++h) {
    const Probe alone{one.shape, heads[h]};
    results.push_back(compare_rows(claim, fmt::format("head {} of {} {}, {}", h, heads.size(), how, one.name()),
                                   outputs[h], attended(*methods[h], heads[h], one.shape.mask),
                                   row_conditions(*methods[h], alone, non_negative, seed), size_of(heads[h].V),
                                   double_tolerance));
  }
}

// Four heads that depend on each other: against the transcription, and under a causal mask with later tokens moved.
void test_mixed(const Probe& one, const Methods& methods, Index key_heads, const std::vector<HeadData<double>>& heads,
                ClaimResults& results) {
  const Mask mask = one.shape.mask;
  const auto outputs = attended_together(methods, key_heads, heads, mask);
  const auto wanted = all_heads<double>(methods, key_heads)->transcription(heads, mask);
  const std::vector<double> condition(static_cast<size_t>(one.shape.nq), 1.0);
  for (size_t h = 0; h < wanted.size(); ++h)
    results.push_back(compare_rows(claim,
                                   fmt::format("head {} of {} that share {} keys, against the transcription, {}", h,
                                               heads.size(), key_heads, one.name()),
                                   outputs[h], wanted[h], condition, size_of(heads[h].V), double_tolerance));
  if (!mask.causal || one.shape.nq != one.shape.nk) return;
  const Index kept = one.shape.nk * 2 / 3, moved = one.shape.nk - kept;
  std::vector<HeadData<double>> others = heads;
  for (HeadData<double>& other : others)
    for (Matrix<double>* const X : {&other.Q, &other.K, &other.V}) X->bottomRows(moved) *= -3;
  const auto after = attended_together(methods, key_heads, others, mask);
  double different = 0;
  for (size_t h = 0; h < heads.size(); ++h)
    different += differing_numbers<double>(outputs[h].topRows(kept), after[h].topRows(kept));
  results.push_back(compared(
      claim, fmt::format("numbers that later tokens of {} heads change, {}", heads.size(), one.name()), different, 0));
}

}  // namespace

ClaimResults test_heads(const Subject& subject, const Probes& probes, std::uint64_t seed) {
  constexpr Index count = 3;
  ClaimResults results;
  for (const Probe& one : probes) {
    const Drawing drawing(subject, subject.params, one.shape, seed);
    Methods methods;
    for (Index h = 0; h < count; ++h) methods.push_back(drawing.draw_for<double>(seed, h, 0));
    if (!all_heads<double>(methods)) return {skipped(claim, "it takes one head a call")};
    const HeadData<double>& head = one.head;
    const std::vector<HeadData<double>> heads{
        head,
        {-head.Q, head.K, 2 * head.V, drawn_extras(subject.params, one.shape, seed + 1)},
        {4 * head.Q, -4 * head.K, -head.V, drawn_extras(subject.params, one.shape, seed + 2)}};  // of another size
    const bool mixed = subject.claims(subject.params, one.shape).mixes_heads;
    if (!mixed) compare_with_each(subject, one, methods, count, heads, "in one call", seed, results);
    methods.push_back(drawing.draw_for<double>(seed, count, 0));
    const HeadData<double>& other = heads[2];  // with other keys than the first
    const std::vector<HeadData<double>> grouped{head,
                                                {-head.Q, head.K, head.V, head.extra},
                                                {2 * head.Q, other.K, other.V, other.extra},
                                                {other.Q, other.K, other.V, other.extra}};
    if (mixed)
      test_mixed(one, methods, 2, grouped, results);
    else
      compare_with_each(subject, one, methods, 2, grouped, "of 2 groups that share keys", seed, results);
  }
  if (results.empty())
    return {skipped(claim,
                    "it mixes heads, so that none equals what it gives alone: a transcription for all heads "
                    "(in Python: [heads, n, d]) proves them")};
  return results;
}

}  // namespace attnbench
