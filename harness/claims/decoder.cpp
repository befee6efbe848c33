// Decoders: a prompt of any length and then one token after another give the rows of causal attention over the whole.
#include <fmt/format.h>

#include <limits>
#include <set>

#include "harness/claims/precision.hpp"
#include "harness/claims/structural.hpp"
#include "harness/core/needs.hpp"
#include "harness/core/torch_place.hpp"

namespace attnbench {

namespace {

constexpr const char* claim = "decoder";

// With positions that are not the numbers of the tokens, where a method takes any.
Probe at_other_positions(const Probe& one, const Params& method) {
  Probe moved = one;
  for (const Need& need : needs_of(method))
    if (need.values == Need::Values::positions) {
      auto& numbers = moved.head.extra.at(need.name).numbers;
      numbers = (2 * numbers.array() + 5).matrix();
    }
  return moved;
}

// Two prompts, a step after each. second: the tokens of the second one.
Result compare_two_prompts(const Approximation<double>& method, const Probe& one, Index second,
                           const Matrix<double>& whole, const std::vector<double>& condition) {
  const Index first = one.shape.nq / 3, last = first + 1 + second;
  const auto decoder = method.decoder(one.shape);
  Context context;
  Matrix<double> out(2, one.shape.dv), want(2, one.shape.dv);
  const auto tokens = [&](Index begin, Index count) { return HeadPart<double>::tokens(one.head.view(), begin, count); };
  decoder->prefill(tokens(0, first).view(), context);
  decoder->step(tokens(first, 1).view(), context, row_block(out, 0, 1));
  decoder->prefill(tokens(first + 1, second).view(), context);
  decoder->step(tokens(last, 1).view(), context, row_block(out, 1, 1));
  want << whole.row(first), whole.row(last);
  return compare_rows(claim, fmt::format("the rows behind prompts of {} and {}, {}", first, second, one.name()), out,
                      want, {condition[static_cast<size_t>(first)], condition[static_cast<size_t>(last)]},
                      size_of(one.head.V), double_tolerance);
}

// Prompts that end around the edges of blocks of 64, and around the numbers of the spec: a cache of 32 tokens fills.
std::set<Index> prompts_for(const Params& params, Index n) {
  std::set<Index> prompts{0, 1, 63, 64, 65, n - 1};
  for (const Parameter& p : params.declared())
    if (p.kind == Parameter::Kind::integer && p.catalogue.empty())
      for (const Index value = params.integer(p.name); const Index prompt : {value / 2, value - 1, value, value + 1})
        prompts.insert(prompt);
  std::erase_if(prompts, [n](Index prompt) { return prompt < 0 || prompt >= n; });
  return prompts;
}

// Two decoders of one instance take turns with different heads.
Result compare_turns(const Approximation<double>& method, const Probe& one) {
  const HeadData<double>& head = one.head;
  const HeadData<double> other{-head.Q, head.Q, head.V, head.extra};
  const auto first = method.decoder(one.shape), second = method.decoder(one.shape);
  Context context;
  Matrix<double> row(1, one.shape.dv), mixed(one.shape.nq, one.shape.dv);
  for (Index t = 0; t < one.shape.nq; ++t) {
    first->step(HeadPart<double>::tokens(head.view(), t, 1).view(), context, row_block(mixed, t, 1));
    second->step(HeadPart<double>::tokens(other.view(), t, 1).view(), context, row);
  }
  return compared(claim, "numbers that another decoder of the instance changes, " + one.name(),
                  differing_numbers(mixed, decoded(method, one.shape, head, 0)), 0);
}

}  // namespace

ClaimResults test_decoder(const Subject& subject, const Probes& probes, std::uint64_t seed) {
  ClaimResults results;
  bool causal = false;
  for (const Probe& given : probes) {
    const Probe held_by_float = at_other_positions(given, subject.params), one = with_all_bits(held_by_float, seed);
    const Mask& mask = one.shape.mask;
    if (!mask.causal || mask.offset != 0 || mask.keys >= 0 || one.shape.nq != one.shape.nk) continue;
    causal = true;
    const Drawing drawing(subject, subject.params, one.shape, seed);
    const auto method = drawing.draw<double>(0);
    if (!method->decoder(one.shape)) return {skipped(claim, "it offers no decoder")};
    const bool non_negative = subject.claims(subject.params, one.shape).non_negative;
    const Matrix<double> whole = attended(*method, one.head, mask);
    const auto condition = row_conditions(*method, one, non_negative, seed);
    const Index n = one.shape.nq;
    for (const Index prompt : prompts_for(subject.params, n)) {
      results.push_back(compare_rows(claim, fmt::format("rows after a prompt of {}, {}", prompt, one.name()),
                                     decoded(*method, one.shape, one.head, prompt), whole.bottomRows(n - prompt),
                                     {condition.begin() + static_cast<std::ptrdiff_t>(prompt), condition.end()},
                                     size_of(one.head.V), double_tolerance));
    }
    if (n >= 12)
      for (const Index second : {Index{2}, n - 2 - n / 3})
        results.push_back(compare_two_prompts(*method, one, second, whole, condition));
    results.push_back(compare_turns(*method, one));
    const auto single = drawing.draw<float>(0);
    const Tensors state = single->state();
    const auto exact = drawing.draw<double>(0, state.empty() ? nullptr : &state);
    const Matrix<double> steps =
        decoded(*single, one.shape, held_by_float.head.cast<float>(), 0).template cast<double>();
    const double spacing = spacing_of(subject.params);
    results.push_back(
        spacing > std::numeric_limits<float>::epsilon()
            ? compare_coarse_with_double(
                  claim,
                  fmt::format("steps in {} against attend in double, {}", subject.params.text("dtype"), one.name()),
                  steps, *exact, held_by_float, spacing,
                  4)  // a state that is kept in the type rounds at each of 130 tokens: 1.6
            : compare_with_double(claim, "steps in float against attend in double, " + one.name(), steps, *exact,
                                  held_by_float, row_conditions(*exact, held_by_float, non_negative, seed),
                                  float_rounding(held_by_float, state)));
  }
  if (!causal) return {skipped(claim, "it has no causal form for one query a key")};
  return results;
}

}  // namespace attnbench
