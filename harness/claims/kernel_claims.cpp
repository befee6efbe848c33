#include "harness/claims/kernel_claims.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/core/needs.hpp"

namespace attnbench {

namespace {

// In units of the natural scale. Rounding is 1e-12; an epsilon of 1e-4 in a method gives 1e-4 and more.
constexpr double exact_tolerance = 1e-9;
constexpr double no_variance = 1e-14;  // in units of scale^2: rounding leaves this much of a variance of 0
constexpr Index exact_draws = 8;
constexpr Index pilot_draws = 256;    // give the standard deviation of skewed estimates to a quarter
constexpr Index fewest_draws = 1024;  // with fewer draws, z-scores are not normal
constexpr Index most_draws = 1 << 20;
constexpr Index batch = 128;

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
      plan.tests.push_back({"unbiased", place(plan.drawing) + ": " + plan.pairs.names[i], p, 1,
                            plan.mean[i] / plan.scale[i], least_effect,
                            plan.variance.empty() ? 0 : plan.variance[i] / (plan.scale[i] * plan.scale[i])});
  }
}

void add_variance(KernelPlan& plan, Index first, Index count) {
  if (plan.variance.empty()) return;
  for (Index p = first; p < first + count; ++p)
    if (plan.variance[static_cast<size_t>(p)] == 0) return;
  plan.tests.push_back({"variance", place(plan.drawing) + ": " + plan.pairs.names[static_cast<size_t>(first)], first,
                        count, 1, least_variance_error, 0});
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
  if (test.claim == "unbiased") return values[first] / plan.scale[first];
  double sum = 0;
  for (size_t p = first; p < first + static_cast<size_t>(test.count); ++p)
    sum += (values[p] - plan.mean[p]) * (values[p] - plan.mean[p]) / plan.variance[p];
  return sum / static_cast<double>(test.count);
}

// Moments of each test's statistic over draws [begin, begin + draws). Batches have a fixed size and are merged in
// order.
std::vector<Moments> sample(const KernelPlan& plan, Index begin, Index draws, Context& context) {
  Index pairs = 0;
  for (const KernelTest& test : plan.tests) pairs = std::max(pairs, test.first + test.count);
  std::vector<std::vector<Moments>> batches(static_cast<size_t>((draws + batch - 1) / batch),
                                            std::vector<Moments>(plan.tests.size()));
  context.for_blocks(draws, batch, [&](Context&, Index first, Index count) {
    auto& moments = batches[static_cast<size_t>(first / batch)];
    std::vector<double> values(static_cast<size_t>(pairs));
    for (Index i = first; i < first + count; ++i) {
      kernel_on_pairs(*plan.drawing.draw<double>(begin + i), plan, values);
      for (size_t t = 0; t < moments.size(); ++t) moments[t].add(statistic(plan, plan.tests[t], values));
    }
  });
  std::vector<Moments> all(plan.tests.size());
  for (const auto& moments : batches)
    for (size_t t = 0; t < all.size(); ++t) all[t].merge(moments[t]);
  return all;
}

bool fails_anyway(const KernelTest& test, const Moments& seen, double threshold) {
  return std::abs(score(seen, test.expected)) > 2 * threshold;
}

// N = (sigma (t + 3.1) / least effect)^2. Uses the closed form's sigma if it is larger, because a small sample of a
// skewed estimate shows too little. Returns 0 beyond twice the threshold: the test fails anyway, and the squared errors
// of a wrong kernel would ask for the maximum.
double draws_needed(const KernelTest& test, const Moments& seen, double threshold) {
  if (fails_anyway(test, seen, threshold)) return 0;
  const double errors = (threshold + power_quantile) / test.least_effect;
  return std::max(seen.variance(), test.variance) * errors * errors;
}

double most_needed(const KernelPlan& plan, const std::vector<Moments>& seen, double threshold) {
  double most = 0;
  for (size_t t = 0; t < seen.size(); ++t) most = std::max(most, draws_needed(plan.tests[t], seen[t], threshold));
  return most;  // an estimate that is NaN needs no draws
}

// Counts the numbers in the state, or those of its projection vectors if the state does not contain them.
Index most_affordable(const KernelPlan& plan, double work) {
  const auto& params = plan.drawing.params();
  double numbers = counts_vectors(params) ? static_cast<double>(params.integer("m") * plan.drawing.shape().d) : 1;
  double shown = 0;
  for (const auto& [name, tensor] : plan.drawing.draw<double>(0)->state()) shown += static_cast<double>(tensor.size());
  numbers = std::max(numbers, shown);
  return static_cast<Index>(std::clamp(work / numbers, 2.0, static_cast<double>(most_draws)));
}

Result judged(const KernelTest& test, const Moments& seen, double threshold) {
  if (seen.variance() <= 1e-24 && test.variance == 0)  // deterministic, though no closed form says so
    return compared(test.claim, test.tested, std::abs(seen.mean - test.expected), exact_tolerance);
  Result result{.claim = test.claim, .tested = test.tested};
  const double effect = seen.mean - test.expected, width = threshold * seen.standard_error();
  Evidence evidence{.z = score(seen, test.expected),
                    .effect = effect,
                    .interval = {effect - width, effect + width},
                    .draws = seen.count};
  if (test.claim == "unbiased" && test.expected != 0) evidence.of_mean = effect / test.expected;
  const double needed = draws_needed(test, seen, threshold);
  // With too few draws and half of the stated variance unseen, the sample also misses the tail that makes the mean.
  const bool unseen_tail = needed > seen.count && seen.variance() < test.variance / 2;
  if (!(std::abs(evidence.z) <= threshold) && !unseen_tail) {
    result.outcome = Outcome::fail;
  } else if (needed > seen.count) {
    result.outcome = Outcome::undecided;
    evidence.draws_to_decide = std::ceil(needed);
  } else {
    result.outcome = Outcome::pass;
  }
  result.evidence = evidence;
  return result;
}

// Samples in parts, each as large as all before it. Stops when every test fails anyway or has the draws that `earlier`
// asks for: a variance that is four times too large shows in a fiftieth of the draws that find 10 %.
std::vector<Moments> sample_until_decided(const KernelPlan& plan, Index begin, Index draws,
                                          const std::vector<Moments>& earlier, double threshold, Context& context) {
  std::vector<Moments> seen(plan.tests.size());
  for (Index done = 0; done < draws;) {
    const Index part = std::min(std::max(fewest_draws, done), draws - done);
    const std::vector<Moments> more = sample(plan, begin + done, part, context);
    done += part;
    double wanted = 0;
    for (size_t t = 0; t < seen.size(); ++t) {
      seen[t].merge(more[t]);
      if (!fails_anyway(plan.tests[t], seen[t], threshold))
        wanted = std::max(wanted, 1.5 * draws_needed(plan.tests[t], earlier[t], threshold));
    }
    if (static_cast<double>(done) >= wanted) break;
  }
  return seen;
}

ClaimResults test_statistically(const KernelPlan& plan, double threshold, double work, Context& context) {
  if (plan.tests.empty()) return {};
  const Index affordable = most_affordable(plan, work);
  // Each sample is fresh, and the previous one determines its size. A sample that determined its own size would favour
  // the draws in which a skewed estimate has a small variance, and those are low. We take half as many again as needed,
  // because the pilot knows the variance only to a quarter.
  Index begin = 0, draws = std::min(pilot_draws, affordable);
  std::vector<Moments> seen = sample(plan, begin, draws, context);
  do {
    begin += draws;
    const double wanted = 1.5 * most_needed(plan, seen, threshold);
    draws = std::min(affordable, static_cast<Index>(std::clamp(wanted, static_cast<double>(fewest_draws),
                                                               static_cast<double>(most_draws))));
    seen = sample_until_decided(plan, begin, draws, seen, threshold, context);
  } while (draws < affordable && most_needed(plan, seen, threshold) > static_cast<double>(draws));
  ClaimResults results;
  for (size_t t = 0; t < seen.size(); ++t) results.push_back(judged(plan.tests[t], seen[t], threshold));
  return results;
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
      std::erase_if(all.plans.back().tests, [](const KernelTest& test) { return test.claim != "unbiased"; });
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
