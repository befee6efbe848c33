// Costs that a method declares, against what a call counts and takes. `--match flops=` and `recommend` trust them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/claims/structural.hpp"
#include "harness/claims/variations.hpp"
#include "harness/core/methods_inside.hpp"
#include "harness/machine/counted_calls.hpp"
#include "harness/machine/device_facts.hpp"
#include "harness/machine/peak_memory.hpp"

namespace attnbench {

namespace {

Shape square(const Subject& subject, Index n, Index d) {
  Shape shape{.nq = n, .nk = n, .d = d, .dv = d};
  shape.mask.causal = !subject.claims(subject.params, shape).no_form.empty();
  return shape;
}

// Leading terms only. A multiply-add that is declared as one FLOP is off by 2.
constexpr double most_ratio = 1.5;

bool is_cost(double number) { return std::isfinite(number) && number >= 0; }

Result failed(const char* claim, std::string reason) {
  return {.claim = claim, .tested = "", .outcome = Outcome::fail, .reason = std::move(reason)};
}

// Whether the method, or one inside it, has a pattern: its keys are gathered in blocks, which hold more than it has.
bool gathers_keys(const Params& params, const Shape& shape) {
  const Subject subject = subject_of(params);
  if (const auto method = drawn_if_possible(subject, params, shape, 1); method && method->pattern()) return true;
  const auto inside = methods_inside(params);
  return std::any_of(inside.begin(), inside.end(), [&](const Params& one) { return gathers_keys(one, shape); });
}

// The most that a call may do, and its fewest FLOPs: the same where the data do not decide.
struct DeclaredWork {
  double least_flops, flops, exps;
};

// attnbench may see only a part of a plugin's work. A plugin that does more than it declares is wrong; one that seems
// to do less may do it unseen.
// all_seen: under another mask all of it was seen.
ClaimResults count_elsewhere(const CountedCall& counted, const DeclaredWork& said, double allowed,
                             const std::string& where, bool all_seen = false) {
  constexpr const char* claim = "work";
  const auto at_least = [&](const char* what, double count, double declared) {
    return compared(claim,
                    fmt::format("{}, {:.3g} seen and {:.3g} declared, {}: their ratio", what, count, declared, where),
                    count == 0 ? 0 : count / declared, allowed);
  };
  ClaimResults results{at_least("FLOPs", counted.least.flops, said.flops),
                       at_least("exponentials", counted.least.exps, said.exps)};
  if (deciding(results).outcome == Outcome::fail || said.least_flops <= allowed * counted.most_flops) return results;
  if (all_seen) {
    results.push_back(compared(claim,
                               fmt::format("FLOPs, {:.3g} declared at least and {:.3g} seen, {}: their ratio",
                                           said.least_flops, counted.most_flops, where),
                               said.least_flops / std::max(counted.most_flops, 1.0), allowed));
    return results;
  }
  return {skipped(claim, fmt::format("unproved: of the {:.3g} FLOPs that it declares at {} only {:.3g} are seen",
                                     said.least_flops, where, counted.most_flops))};
}

// Work that one call counts, against what is declared. unmasked: what was found without a causal mask.
ClaimResults count_work(const Subject& subject, const Shape& shape, const ClaimResults& unmasked, std::uint64_t seed) {
  constexpr const char* claim = "work";
  const std::string where = shape.mask.causal ? "n = 512, causal" : "n = 512";
  const Work most = subject.cost(subject.params, shape);
  const DeclaredWork said{subject.least_flops ? subject.least_flops(subject.params, shape) : most.flops, most.flops,
                          most.exps};
  if (!is_cost(said.flops) || !is_cost(said.exps))
    return {
        failed(claim, fmt::format("it declares {:g} FLOPs and {:g} exponentials at n = 512; expected numbers from 0",
                                  said.flops, said.exps))};
  if (!(said.least_flops >= 0 && said.least_flops <= said.flops))
    return {failed(claim, fmt::format("it declares {:g} to {:g} FLOPs at n = 512; expected the least, from 0, and the "
                                      "most",
                                      said.least_flops, said.flops))};
  const Probe one = gaussian_probe(subject.params, shape, seed);
  const auto method = Drawing(subject, subject.params, shape, seed, shape.nk).draw<float>(0);
  const HeadData<float> head = one.head.cast<float>();
  Matrix<float> out(shape.nq, shape.dv);
  Context context;
  const bool second = !unmasked.empty();
  const auto elsewhere = counted([&] { method->attend(head.view(), shape.mask, context, out); });
  if (elsewhere)
    return count_elsewhere(*elsewhere, said, most_ratio, where, second && deciding(unmasked).outcome == Outcome::pass);
  const Work& counted = context.work;
  if (counted.flops == 0 && counted.exps == 0 && (said.flops > 0 || said.exps > 0))
    return {skipped(claim, "attend counts no work: it calls none of the products of harness/linalg")};
  // Blocks of rows gather more keys than their rows have, under a causal mask up to three times as many.
  const double allowed = !gathers_keys(subject.params, shape) ? most_ratio : shape.mask.causal ? 3 : 2;
  constexpr double most_unseen = 4;  // of a plugin's work, some may be Eigen's own products, which nothing counts
  // Under a second mask a row may see few of the keys that are chosen for all rows.
  if (!subject.built_in &&
      (second || (said.flops <= most_unseen * counted.flops && said.exps <= most_unseen * counted.exps)))
    return count_elsewhere({.least = counted, .most_flops = counted.flops}, said, allowed, where);
  ClaimResults results;
  const auto compare = [&](const char* what, double count, double least, double declared) {
    const double ratio = least <= count && count <= declared ? 1 : std::max(count / declared, least / count);
    results.push_back(compared(
        claim, fmt::format("{}, {:.3g} counted and {:.3g} declared, {}: their ratio", what, count, declared, where),
        ratio, allowed));
  };
  compare("FLOPs", counted.flops, said.least_flops, said.flops);
  compare("exponentials", counted.exps, said.exps, said.exps);
  return results;
}

// The peak of one call. Library caches and compiled kernels count in the first calls at a length only, and on a busy
// machine the kernel's own count is late, so that the least of eight calls counts where the first is beyond what is
// declared.
class MemoryOfCalls {
 public:
  MemoryOfCalls(const Subject& subject, const Shape& shape, std::uint64_t seed)
      : shape_(shape),
        method_(Drawing(subject, subject.params, shape, seed, shape.nk).draw<float>(0)),
        head_(gaussian_probe(subject.params, shape, seed).head.cast<float>()),
        out_(Matrix<float>::Zero(shape.nq, shape.dv)) {}

  std::optional<double> peak() {
    Context context;
    take_device_facts();  // those of earlier calls
    const auto taken = peak_bytes([&] { method_->attend(head_.view(), shape_.mask, context, out_); });
    if (const auto told = take_device_facts(); told && told->peak_bytes) return told->peak_bytes;
    return taken;
  }

 private:
  Shape shape_;
  std::unique_ptr<Approximation<float>> method_;
  HeadData<float> head_;
  Matrix<float> out_;
};

// A head with few queries, so that calls at 8192 tokens are cheap; with one a key where the method takes no other.
Shape long_shape(const Subject& subject, Index n) {
  Shape shape = square(subject, n, 64);
  shape.nq = 64;
  shape.mask.offset = shape.mask.causal ? n - shape.nq : 0;
  return subject.claims(subject.params, shape).no_form.empty() ? shape : square(subject, n / 4, 64);
}

}  // namespace

ClaimResults test_work(const Subject& subject, const Probes&, std::uint64_t seed) {
  if (subject.cost_assumed) return {skipped("work", "it declares no cost: `describe` says which one is assumed")};
  ClaimResults results;
  for (const bool causal : {false, true}) {
    const Shape shape{.nq = 512, .nk = 512, .d = 64, .dv = 64, .mask = {.causal = causal}};
    if (!subject.claims(subject.params, shape).no_form.empty()) continue;
    const ClaimResults part = count_work(subject, shape, results, seed);
    results.insert(results.end(), part.begin(), part.end());
  }
  return results;
}

ClaimResults test_memory(const Subject& subject, const Probes&, std::uint64_t seed) {
  constexpr const char* claim = "memory";
  constexpr double pages = 1 << 19;       // the kernel counts memory in batches of pages, some hundred KB a core
  constexpr double affordable = 1 << 25;  // at the larger size; else a smaller one
  if (subject.memory_assumed) return {skipped(claim, "it declares no memory: `describe` says which one is assumed")};
  if (sanitized) return {skipped(claim, "the sanitizers' own memory counts as the program's")};
  const auto said_at = [&](const Shape& shape) { return subject.memory(subject.params, shape); };
  const double slack = (subject.built_in ? 2 : 4) * pages;  // interpreters allocate beside the method
  const Index n = said_at(square(subject, 2048, 64)) <= affordable ? 2048 : 1024;
  const Shape whole = square(subject, n, 64), low = long_shape(subject, 2048), high = long_shape(subject, 8192);
  for (const Shape& shape : {whole, low, high})
    if (const double said = said_at(shape); !is_cost(said))
      return {failed(claim, fmt::format("it declares {:g} bytes at n = {}; expected a number from 0", said, shape.nk))};
  // 0 when the claim holds, so that reports of the same seed are equal.
  const auto beyond = [](double taken, double said, double slack) {
    return std::max({0.0, taken - most_ratio * said - slack, said - most_ratio * taken - slack});
  };
  const auto compare = [&](const std::string& where, double said, double margin, const auto& take) -> Result {
    std::optional<double> taken;
    for (int call = 0; call < 8 && (!taken || beyond(*taken, said, margin) > 0); ++call) {
      const std::optional<double> now = take();
      if (!now) return skipped(claim, "the kernel does not tell the peak of a process's memory");
      taken = std::min(*now, taken.value_or(*now));
    }
    Result result = compared(claim,
                             fmt::format("bytes beyond a factor of {} and {:.1f} MB of the declared {:.3g} MB, {}",
                                         most_ratio, margin / 1e6, said / 1e6, where),
                             beyond(*taken, said, margin), 0);
    if (result.outcome == Outcome::fail) result.reason = fmt::format("{:.3g} MB taken", *taken / 1e6);
    return result;
  };
  MemoryOfCalls(subject, square(subject, n / 4, 64), seed).peak();  // LAPACK keeps what it allocates on its first call
  MemoryOfCalls of_whole(subject, whole, seed), of_low(subject, low, seed), of_high(subject, high, seed);
  return {compare(fmt::format("n = {}", n), said_at(whole), slack, [&] { return of_whole.peak(); }),
          compare(fmt::format("growth from n = {} to {}, {} queries", low.nk, high.nk, high.nq),
                  said_at(high) - said_at(low),
                  // Partial sums over blocks of tokens grow until there are eight of them.
                  slack + said_at(high) / 2, [&]() -> std::optional<double> {
                    const auto least = of_low.peak(), most = of_high.peak();
                    return least && most ? std::optional(std::max(0.0, *most - *least)) : std::nullopt;
                  })};
}

ClaimResults test_budget(const Subject& subject, const Probes&, std::uint64_t) {
  struct Costs {
    double work, bytes;  // of a call, and of a decoder
  };
  constexpr const char* claim = "budget";
  ClaimResults results;
  if (subject.cost_assumed) return {skipped(claim, "it declares no cost: `describe` says which one is assumed")};
  const Params defaults("methods", subject.params.name());  // beside other parameters it may have no effect
  for (const Parameter& p : defaults.declared()) {
    if (!p.budget) continue;
    const auto cost_at = [&](Index value) {
      const Params params = defaults.with(p.name, std::to_string(value));
      Shape shape{.nq = 1024, .nk = 1024, .d = 64, .dv = 64};
      shape.mask.causal = !subject.claims(params, shape).no_form.empty();
      const Work work = subject.cost(params, shape);
      return Costs{work.flops + work.exps, subject.decoder_bytes ? subject.decoder_bytes(params, shape) : 0};
    };
    // More of it may cost more (features) or less (strides), and a count of large blocks may be beyond n at 8 already.
    std::vector<double> costs, bytes;
    std::string values;
    for (const double times : {1.0, 2.0, 8.0, 32.0}) {
      const double value = times * std::max(1.0, p.minimum);
      if (value > p.maximum) continue;
      const Costs here = cost_at(static_cast<Index>(value));
      costs.push_back(here.work);
      bytes.push_back(here.bytes);
      values += fmt::format("{}{:.0f}", values.empty() ? "" : ", ", value);
    }
    if (costs.size() < 2) continue;
    const auto [least, most] = std::minmax_element(costs.begin(), costs.end());
    const auto [few, many] = std::minmax_element(bytes.begin(), bytes.end());
    const bool differ = *most - *least > 1e-3 * *most || *many - *few > 1e-3 * *many;
    results.push_back(compared(
        claim,
        differ
            ? fmt::format("{}={} declare costs from {:.3g} to {:.3g} and {:.3g} to {:.3g} bytes of a decoder, n = 1024",
                          p.name, values, *least, *most, *few, *many)
            : fmt::format("{}={} all declare a cost of {:.3g}, n = 1024", p.name, values, *most),
        differ ? 0 : 1, 0));
  }
  if (results.empty()) return {skipped(claim, "it has no parameter that is its budget")};
  return results;
}

}  // namespace attnbench
