// Threads at a length at which engines split their work. `repeatable` uses heads that one block holds.
#include <fmt/format.h>

#include "harness/claims/structural.hpp"

namespace attnbench {

ClaimResults test_threads(const Subject& subject, const Probes&, std::uint64_t seed) {
  constexpr const char* claim = "threads";
  constexpr Index n = 1100, heads = 3;
  ClaimResults results;
  for (const bool causal : {false, true}) {
    const Shape shape{.nq = n, .nk = n, .d = 8, .dv = 5, .mask = {.causal = causal}};
    if (!subject.claims(subject.params, shape).no_form.empty()) continue;
    const auto method = Drawing(subject, subject.params, shape, seed).draw<float>(0);
    std::vector<HeadData<float>> given;
    std::vector<Matrix<float>> alone, together(heads);
    for (Index h = 0; h < heads; ++h) {
      const Probe one = gaussian_probe(subject.params, shape, seed + static_cast<std::uint64_t>(h));
      given.push_back(one.head.cast<float>());
      alone.push_back(attended(*method, given.back(), shape.mask));
    }
    const std::string where = fmt::format("n = {}{}", n, causal ? ", causal" : "");
    results.push_back(compared(claim, "numbers that differ on 3 threads, " + where,
                               differing_numbers(alone[0], attended(*method, given[0], shape.mask, 3)), 0));
    Context context(heads);
    context.for_blocks(heads, 1, [&](Context&, Index h, Index) {
      const auto at = static_cast<size_t>(h);
      together[at] = attended(*method, given[at], shape.mask);
    });
    double different = 0;
    for (size_t h = 0; h < given.size(); ++h) different += differing_numbers(alone[h], together[h]);
    results.push_back(compared(
        claim, fmt::format("numbers that differ when {} threads each take a head, {}", heads, where), different, 0));
  }
  return results;
}

}  // namespace attnbench
