#include "harness/claims/check.hpp"

#include <algorithm>

namespace attnbench {

namespace {

// The results of the action or, if it throws, one result with the reason.
template <class Action>
ClaimResults guarded(const std::string& claim, const Action& action) {
  try {
    return action();
  } catch (const Misuse& e) {
    return {skipped(claim, e.what())};
  } catch (const Skip& e) {
    return {skipped(claim, e.what())};
  } catch (const std::exception& e) {
    return {{.claim = claim, .tested = "", .outcome = Outcome::fail, .reason = e.what()}};
  }
}

KernelPlans planned(const Subject& subject, std::uint64_t seed) {
  try {
    return plan_kernel_claims(subject, seed);
  } catch (const Misuse& e) {
    return {.reason = e.what()};
  } catch (const Skip& e) {
    return {.reason = e.what()};
  } catch (const std::exception& e) {
    return {.reason = e.what(), .failed = true};
  }
}

ClaimResults test_structural_claims(const Subject& subject, const CheckSettings& settings) {
  const auto& claims = structural_claims();
  std::vector<ClaimResults> parts(claims.size());
  Context context(settings.threads);
  context.for_blocks(static_cast<Index>(claims.size()), 1, [&](Context&, Index i, Index) {
    const auto& claim = claims[static_cast<size_t>(i)];
    parts[static_cast<size_t>(i)] = guarded(claim.name, [&] { return claim.test(subject, settings.seed); });
  });
  ClaimResults all;
  for (const ClaimResults& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::string warning_of(const ClaimResults& results) {
  const ClaimResults paths = of_claim(results, "second-paths");
  if (deciding(paths).outcome != Outcome::fail) return {};
  return "its kernel is not what attend runs: exact-pairs, unbiased and variance say nothing of what runs";
}

}  // namespace

Outcome Report::outcome() const {
  Outcome gravest = Outcome::skipped;
  for (const SubjectReport& subject : subjects) gravest = std::max(gravest, deciding(subject.results).outcome);
  return gravest;
}

int Report::exit_code() const {
  switch (outcome()) {
    case Outcome::fail:
      return 1;
    case Outcome::undecided:
      return 3;
    default:
      return 0;
  }
}

std::vector<std::pair<std::string, std::string>> claim_meanings() {
  std::vector<std::pair<std::string, std::string>> all;
  for (const auto& claim : structural_claims()) all.emplace_back(claim.name, claim.meaning);
  all.emplace_back("exact-pairs", "pairs (q, k) whose estimate has variance 0 give its mean in every draw");
  all.emplace_back("unbiased", "the kernel estimate's mean over draws is its closed form; finds 2 % of its scale");
  all.emplace_back("variance", "its mean squared error over draws is the closed form; finds 10 %");
  return all;
}

Report check(const std::vector<Subject>& subjects, const CheckSettings& settings,
             const std::function<void(const SubjectReport&)>& done) {
  Report report{.settings = settings};
  std::vector<KernelPlans> plans;
  for (const Subject& subject : subjects) {
    plans.push_back(planned(subject, settings.seed));
    report.tests += plans.back().tests();
  }
  report.threshold = z_threshold(settings.error_rate, std::max(1.0, report.tests));
  for (size_t s = 0; s < subjects.size(); ++s) {
    SubjectReport one{.spec = subjects[s].params.spec(), .results = test_structural_claims(subjects[s], settings)};
    Context context(settings.threads);
    const ClaimResults kernel =
        guarded("unbiased", [&] { return test_kernel_claims(plans[s], report.threshold, settings.work, context); });
    one.results.insert(one.results.end(), kernel.begin(), kernel.end());
    one.warning = warning_of(one.results);
    report.subjects.push_back(std::move(one));
    if (done) done(report.subjects.back());
  }
  return report;
}

}  // namespace attnbench
