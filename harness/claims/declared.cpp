// Costs that a method declares, against what a call counts and takes. `--match flops=` and `recommend` trust them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/claims/structural.hpp"
#include "harness/machine/device_facts.hpp"
#include "harness/machine/peak_memory.hpp"

namespace attnbench {

namespace {

Shape square(const Subject& subject, Index n, Index d) {
  Shape shape{.nq = n, .nk = n, .d = d, .dv = d};
  shape.mask.causal = !subject.claims(subject.params, shape).no_form.empty();
  return shape;
}

bool is_cost(double number) { return std::isfinite(number) && number >= 0; }

Result failed(const char* claim, std::string reason) {
  return {.claim = claim, .tested = "", .outcome = Outcome::fail, .reason = std::move(reason)};
}

}  // namespace

ClaimResults test_work(const Subject& subject, const Probes&, std::uint64_t seed) {
  constexpr const char* claim = "work";
  constexpr double allowed = 2;  // leading terms only; a pattern is gathered in blocks, which do more than it has
  if (subject.cost_assumed) return {skipped(claim, "it declares no cost: `describe` says which one is assumed")};
  const Shape shape = square(subject, 512, 64);
  const Work said = subject.cost(subject.params, shape);
  if (!is_cost(said.flops) || !is_cost(said.exps))
    return {
        failed(claim, fmt::format("it declares {:g} FLOPs and {:g} exponentials at n = 512; expected numbers from 0",
                                  said.flops, said.exps))};
  const Probe one = gaussian_probe(subject.params, shape, seed);
  const auto method = Drawing(subject, subject.params, shape, seed, shape.nk).draw<float>(0);
  const HeadData<float> head = one.head.cast<float>();
  Matrix<float> out(shape.nq, shape.dv);
  Context context;
  method->attend(head.view(), shape.mask, context, out);
  const Work& counted = context.work;
  if (counted.flops == 0 && counted.exps == 0 && (said.flops > 0 || said.exps > 0))
    return {skipped(claim, "attend counts no work: it calls none of the products of harness/linalg")};
  ClaimResults results;
  const auto compare = [&](const char* what, double count, double declared) {
    const double ratio = count == declared ? 1 : std::max(count / declared, declared / count);
    results.push_back(compared(
        claim, fmt::format("{}, {:.3g} counted and {:.3g} declared, n = 512: their ratio", what, count, declared),
        ratio, allowed));
  };
  compare("FLOPs", counted.flops, said.flops);
  compare("exponentials", counted.exps, said.exps);
  return results;
}

ClaimResults test_memory(const Subject& subject, const Probes&, std::uint64_t seed) {
  constexpr const char* claim = "memory";
  constexpr double tiles = 1 << 20;       // below a megabyte are blocks and tiles
  constexpr double affordable = 1 << 25;  // at the larger size; else a smaller one
  if (subject.memory_assumed) return {skipped(claim, "it declares no memory: `describe` says which one is assumed")};
  if (sanitized) return {skipped(claim, "the sanitizers' own memory counts as the program's")};
  const auto declared_at = [&](Index n) { return subject.memory(subject.params, square(subject, n, 64)); };
  const Index n = declared_at(2048) <= affordable ? 2048 : 1024;
  const double said = declared_at(n);
  if (!is_cost(said))
    return {failed(claim, fmt::format("it declares {:g} bytes at n = {}; expected a number from 0", said, n))};
  const auto taken_at = [&](Index tokens) {
    const Shape shape = square(subject, tokens, 64);
    const auto method = Drawing(subject, subject.params, shape, seed, tokens).draw<float>(0);
    const HeadData<float> head = gaussian_probe(subject.params, shape, seed).head.cast<float>();
    Matrix<float> out = Matrix<float>::Zero(shape.nq, shape.dv);
    Context context;
    return peak_bytes([&] { method->attend(head.view(), shape.mask, context, out); });
  };
  taken_at(n / 4);      // LAPACK and devices keep what they allocate on their first call
  take_device_facts();  // those of earlier calls
  auto taken = taken_at(n);
  if (const auto told = take_device_facts(); told && told->peak_bytes) taken = told->peak_bytes;
  if (!taken) return {skipped(claim, "the kernel does not tell the peak of a process's memory")};
  // 0 when the claim holds, so that reports of the same seed are equal.
  const double beyond = std::max({0.0, *taken - 2 * said - tiles, said - 2 * *taken - tiles});
  return {compared(claim,
                   fmt::format("bytes beyond a factor of 2 and 1 MB of the declared {:.3g} MB, n = {}", said / 1e6, n),
                   beyond, 0)};
}

ClaimResults test_budget(const Subject& subject, const Probes&, std::uint64_t) {
  constexpr const char* claim = "budget";
  ClaimResults results;
  if (subject.cost_assumed) return {skipped(claim, "it declares no cost: `describe` says which one is assumed")};
  const Params defaults("methods", subject.params.name());  // beside other parameters it may have no effect
  for (const Parameter& p : defaults.declared()) {
    if (!p.budget) continue;
    const Index low = std::max<Index>(8, static_cast<Index>(p.minimum)), high = 4 * low;
    if (static_cast<double>(high) > p.maximum) continue;
    const auto cost_at = [&](Index value) {
      const Params params = defaults.with(p.name, std::to_string(value));
      Shape shape{.nq = 1024, .nk = 1024, .d = 64, .dv = 64};
      shape.mask.causal = !subject.claims(params, shape).no_form.empty();
      return subject.cost(params, shape).flops + subject.cost(params, shape).exps;
    };
    // More of it may cost more (features) or less (strides).
    const double one = cost_at(low), other = cost_at(high);
    results.push_back(compared(claim, fmt::format("{0}={1} and {0}={2} declare the same work", p.name, low, high),
                               std::abs(one - other) > 1e-3 * std::max(one, other) ? 0 : 1, 0));
  }
  if (results.empty()) return {skipped(claim, "it has no parameter that is its budget")};
  return results;
}

}  // namespace attnbench
