#include "harness/claims/kernel_claims.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/core/needs.hpp"

namespace attnbench {

namespace {

constexpr double no_variance = 1e-14;  // in units of scale^2: rounding leaves this much of a variance of 0
constexpr Index exact_draws = 8;

bool counts_vectors(const Params& params) {
  const auto& declared = params.declared();
  return std::any_of(declared.begin(), declared.end(),
                     [](const Parameter& p) { return p.name == "m" && p.kind == Parameter::Kind::integer; });
}

// A budget of projection vectors that suits d, unless the spec's own is smaller or the method refuses this one.
Params with_small_budget(const Subject& subject, Index d, std::uint64_t seed) {
  const Index m = std::max(2 * d + d / 2, subject.law ? subject.law(subject.params, d).least_m : 1);
  if (!counts_vectors(subject.params) || subject.params.integer("m") <= m) return subject.params;
  try {
    Params small = subject.params.with("m", std::to_string(m));
    Drawing(subject, small, {.nq = 1, .nk = 1, .d = d, .dv = 1}, seed).draw<double>(0);
    return small;
  } catch (const Misuse&) {
    return subject.params;
  }
}

std::string place(const Drawing& drawing) {
  const auto& params = drawing.params();
  return fmt::format("d = {}{}", drawing.shape().d, params.has("m") ? fmt::format(", m = {}", params.text("m")) : "");
}

void add_unbiased(KernelPlan& plan, Index first, Index end, double least_effect) {
  for (Index p = first; p < end; ++p) {
    const auto i = static_cast<size_t>(p);
    if (!plan.variance.empty() && plan.variance[i] == 0)
      plan.exact.push_back(p);
    else
      plan.tests.push_back(
          {{"unbiased", place(plan.drawing) + ": " + plan.pairs.names[i], plan.mean[i] / plan.scale[i], least_effect,
            plan.variance.empty() ? 0 : plan.variance[i] / (plan.scale[i] * plan.scale[i])},
           p,
           1});
  }
}

void add_variance(KernelPlan& plan, Index first, Index count) {
  if (plan.variance.empty()) return;
  for (Index p = first; p < first + count; ++p)
    if (plan.variance[static_cast<size_t>(p)] == 0) return;
  plan.tests.push_back({{"variance", place(plan.drawing) + ": " + plan.pairs.names[static_cast<size_t>(first)], 1,
                         least_variance_error, 0},
                        first,
                        count});
}

KernelPlan plan_at(Drawing drawing, const KernelTheory& theory, std::uint64_t seed) {
  const Index d = drawing.shape().d;
  Pairs pairs = mean_pairs(d, seed);
  const Index near = pairs.size();
  pairs.append(far_pairs(d, seed));
  const Index means = pairs.size();
  pairs.append(variance_pairs(d, seed));
  const Index first_exact = pairs.size();
  pairs.append(opposite_and_equal_pairs(d, seed));
  const Index count = pairs.size();
  Extras extras = drawn_extras(drawing.params(), {.nq = count, .nk = count, .d = d, .dv = 1}, seed);
  KernelPlan plan{.drawing = std::move(drawing), .pairs = std::move(pairs), .extras = std::move(extras)};
  for (Index p = 0; p < plan.pairs.size(); ++p) {
    const Pair pair = plan.pairs[p];
    const double mean = theory.mean(pair);
    const double squared = theory.mean(pair_of(pair.q, pair.q)) * theory.mean(pair_of(pair.k, pair.k));
    const double scale = squared > 0 ? std::sqrt(squared) : std::max(std::abs(mean), 1e-300);
    plan.mean.push_back(mean);
    plan.scale.push_back(scale);
    if (!theory.variance) continue;
    const double variance = theory.variance(pair);
    plan.variance.push_back(variance <= no_variance * scale * scale ? 0 : variance);
  }
  add_unbiased(plan, 0, near, least_bias);
  add_unbiased(plan, near, means, least_far_bias);
  add_variance(plan, means, 8);
  add_variance(plan, means + 8, 8);
  if (theory.variance)
    for (Index p = first_exact; p < plan.pairs.size(); ++p)
      if (plan.variance[static_cast<size_t>(p)] == 0) plan.exact.push_back(p);
  return plan;
}

// K of pairs [0, values.size()) in one call: maps of published libraries depend on all keys of a call.
void kernel_on_pairs(const Approximation<double>& method, const KernelPlan& plan, std::span<double> values) {
  const auto count = static_cast<Index>(values.size());
  const Matrix<double> no_values(plan.pairs.size(), 0);
  std::vector<double> log_scale(values.size());
  Context context;
  const auto some = HeadPart<double>::tokens({plan.pairs.Q, plan.pairs.K, no_values, &plan.extras}, 0, count);
  method.kernel()->diagonal(some.view(), context, values, log_scale);
  for (size_t p = 0; p < values.size(); ++p) values[p] *= std::exp(log_scale[p]);
}

double statistic(const KernelPlan& plan, const KernelTest& test, const std::vector<double>& values) {
  const auto first = static_cast<size_t>(test.first);
  if (test.number.claim == "unbiased") return values[first] / plan.scale[first];
  double sum = 0;
  for (size_t p = first; p < first + static_cast<size_t>(test.count); ++p)
    sum += (values[p] - plan.mean[p]) * (values[p] - plan.mean[p]) / plan.variance[p];
  return sum / static_cast<double>(test.count);
}

// Counts the numbers in the state, or those of its projection vectors if the state does not contain them.
double numbers_of_state(const KernelPlan& plan) {
  const auto& params = plan.drawing.params();
  double numbers = counts_vectors(params) ? static_cast<double>(params.integer("m") * plan.drawing.shape().d) : 1;
  double shown = 0;
  for (const auto& [name, tensor] : plan.drawing.draw<double>(0)->state()) shown += static_cast<double>(tensor.size());
  return std::max(numbers, shown);
}

ClaimResults test_statistically(const KernelPlan& plan, double threshold, double work, Context& context) {
  if (plan.tests.empty()) return {};
  std::vector<DrawnNumber> numbers;
  Index pairs = 0;
  for (const KernelTest& test : plan.tests) {
    numbers.push_back(test.number);
    pairs = std::max(pairs, test.first + test.count);
  }
  const auto draw = [&](Index i, std::span<double> statistics) {
    std::vector<double> values(static_cast<size_t>(pairs));
    kernel_on_pairs(*plan.drawing.draw<double>(i), plan, values);
    for (size_t t = 0; t < statistics.size(); ++t) statistics[t] = statistic(plan, plan.tests[t], values);
  };
  return test_over_draws(numbers, draw, numbers_of_state(plan), threshold, work, context);
}

ClaimResults test_exact(const KernelPlan& plan) {
  ClaimResults results;
  std::vector<double> worst(plan.exact.size()), values(static_cast<size_t>(plan.pairs.size()));
  for (Index i = 0; i < exact_draws; ++i) {
    kernel_on_pairs(*plan.drawing.draw<double>(i), plan, values);
    for (size_t e = 0; e < worst.size(); ++e) {
      const auto p = static_cast<size_t>(plan.exact[e]);
      worst[e] = worse(worst[e], std::abs(values[p] - plan.mean[p]) / plan.scale[p]);
    }
  }
  for (size_t e = 0; e < worst.size(); ++e)
    results.push_back(compared("exact-pairs",
                               place(plan.drawing) + ": " + plan.pairs.names[static_cast<size_t>(plan.exact[e])],
                               worst[e], exact_tolerance));
  return results;
}

// The largest bias that was seen, of a kernel that claims none.
Result measured_bias(const ClaimResults& results, const std::string& unclaimed) {
  const auto bias = [](const Result& result) {
    return result.evidence ? std::abs(result.evidence->effect) : result.deviation;  // without evidence: no variance
  };
  Result largest = *std::max_element(results.begin(), results.end(),
                                     [&](const Result& a, const Result& b) { return bias(a) < bias(b); });
  largest.outcome = Outcome::skipped;
  largest.reason = fmt::format("{}; the largest bias of {} pairs is ", unclaimed, results.size());
  if (const auto& e = largest.evidence)
    largest.reason += fmt::format("{:+.2f} % [{:+.2f}, {:+.2f}] in {:.0f} draws", 100 * e->effect,
                                  100 * e->interval.low, 100 * e->interval.high, e->draws);
  else
    largest.reason += fmt::format("{:.2f} % in every draw", 100 * largest.deviation);
  return largest;
}

}  // namespace

double KernelPlans::tests() const {
  double count = 0;
  if (!unclaimed.empty()) return count;
  for (const KernelPlan& plan : plans) count += static_cast<double>(plan.tests.size());
  return count;
}

KernelPlans plan_kernel_claims(const Subject& subject, std::uint64_t seed, bool asked_budget) {
  std::vector<std::pair<Index, Params>> places;
  for (const Index d : {4, 16}) places.emplace_back(d, with_small_budget(subject, d, seed));
  if (asked_budget && places.back().second.spec() != subject.params.spec()) places.emplace_back(16, subject.params);
  KernelPlans all;
  for (const auto& [d, params] : places) {
    Drawing drawing(subject, params, {.nq = 1, .nk = 1, .d = d, .dv = 1}, seed);
    const auto theory = drawing.theory();
    if (!theory) return {.reason = "no closed form is known of what its kernel estimates"};
    if (!theory->exact)
      all.unclaimed = "its mean is not claimed, because no exact form is known; the target is " + theory->target;
    if (!drawing.draw<double>(0)->kernel()) return {.reason = "it offers no kernel"};
    drawing.fit_once();
    all.plans.push_back(plan_at(std::move(drawing), *theory, seed));
    if (!theory->exact) {
      std::erase_if(all.plans.back().tests, [](const KernelTest& test) { return test.number.claim != "unbiased"; });
      all.plans.back().exact.clear();
    }
  }
  return all;
}

ClaimResults test_kernel_claims(const KernelPlans& all, double threshold, double work, Context& context) {
  if (all.failed)
    return {skipped("exact-pairs", "the claims on its kernel could not be planned"),
            {.claim = "unbiased", .tested = "", .outcome = Outcome::fail, .reason = all.reason},
            skipped("variance", "the claims on its kernel could not be planned")};
  if (!all.reason.empty())
    return {skipped("exact-pairs", all.reason), skipped("unbiased", all.reason), skipped("variance", all.reason)};
  ClaimResults results;
  for (const KernelPlan& plan : all.plans)
    for (const ClaimResults& part : {test_exact(plan), test_statistically(plan, threshold, work, context)})
      results.insert(results.end(), part.begin(), part.end());
  if (!all.unclaimed.empty())
    return {skipped("exact-pairs", all.unclaimed), measured_bias(results, all.unclaimed),
            skipped("variance", all.unclaimed)};
  const bool known = !all.plans[0].variance.empty();
  const auto explain = [&](const char* claim, const char* reason) {
    if (of_claim(results, claim).empty()) results.push_back(skipped(claim, reason));
  };
  const char* unknown = "no closed form of its variance is known";
  explain("exact-pairs", known ? "its variance is 0 for no pair" : unknown);
  explain("unbiased", "its variance is 0: exact-pairs tests the mean in every draw");
  explain("variance", known ? "its variance is 0" : unknown);
  return results;
}

}  // namespace attnbench
