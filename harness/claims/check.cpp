#include "harness/claims/check.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "harness/machine/crash_note.hpp"

namespace attnbench {

namespace {

// The results of the action or, if it gives none or throws, one result with the reason.
template <class Action>
ClaimResults guarded(const std::string& claim, const Action& action) {
  try {
    ClaimResults results = action();
    if (results.empty()) results.push_back(skipped(claim, "it has no form for the heads that this is tested on"));
    return results;
  } catch (const Misuse& e) {
    return {skipped(claim, e.what())};
  } catch (const Skip& e) {
    return {skipped(claim, e.what())};
  } catch (const std::exception& e) {
    return {{.claim = claim, .tested = "", .outcome = Outcome::fail, .reason = e.what()}};
  }
}

KernelPlans planned(const Subject& subject, const CheckSettings& settings) {
  try {
    return plan_kernel_claims(subject, settings.seed, settings.asked_budget);
  } catch (const Misuse& e) {
    return {.reason = e.what()};
  } catch (const Skip& e) {
    return {.reason = e.what()};
  } catch (const std::exception& e) {
    return {.reason = e.what(), .failed = true};
  }
}

EstimatePlans planned_estimates(const Subject& subject, const CheckSettings& settings) {
  try {
    return plan_estimate_claims(subject, settings.seed);
  } catch (const std::exception& e) {  // of its constructor, which the structural claims report
    return {.reason = e.what()};
  }
}

ClaimResults test_structural_claims(const Subject& subject, const CheckSettings& settings) {
  const auto& claims = structural_claims();
  std::vector<ClaimResults> parts(claims.size());
  std::optional<Probes> probes;
  try {
    probes = probes_of(subject, settings.seed);
  } catch (const std::exception&) {  // each claim below asks again, and reports the reason
  }
  const auto test = [&](size_t i) {
    const auto& claim = claims[i];
    const CrashNote note(fmt::format("testing {} of {}", claim.name, subject.params.spec()));
    parts[i] = guarded(claim.name, [&] {
      return claim.test(subject, probes ? *probes : probes_of(subject, settings.seed), settings.seed);
    });
  };
  Context context(settings.threads);
  context.for_blocks(static_cast<Index>(claims.size()), 1, [&](Context&, Index i, Index) {
    if (!claims[static_cast<size_t>(i)].alone) test(static_cast<size_t>(i));
  });
  for (size_t i = 0; i < claims.size(); ++i)
    if (claims[i].alone) test(i);
  ClaimResults all;
  for (const ClaimResults& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// Says of each claim that holds by construction by what it does.
void mark_implied(const Subject& subject, ClaimResults& results) {
  Shape shape{.nq = 64, .nk = 64, .d = 8, .dv = 5};
  try {
    shape.mask.causal = !subject.claims(subject.params, shape).no_form.empty();
    for (const auto& [claim, by] : subject.claims(subject.params, shape).implied)
      for (Result& result : results) {
        if (result.claim != claim) continue;
        result.implied = by;
        if (result.outcome == Outcome::skipped) result.outcome = Outcome::implied;
      }
  } catch (const std::exception&) {  // each claim asked for the claims as well, and failed with the reason
  }
}

// A method is right if a second path computes the same. A transcription shares what its author misread; numbers of
// other code, a limiting case and a closed form do not.
std::vector<std::string> notes_on_proofs(const Subject& subject, const ClaimResults& results) {
  if (subject.built_in) return {};  // tests/oracle has its transcription
  const auto any_tested = [&](std::initializer_list<const char*> claims) {
    return std::any_of(claims.begin(), claims.end(),
                       [&](const char* claim) { return tested(deciding(of_claim(results, claim)).outcome); });
  };
  const bool limit = any_tested({"exact-when"});
  if (!any_tested({"formula", "golden", "unbiased", "exact-pairs"}))
    return {
        fmt::format("nothing proves its formula{}: give a transcription (docs/claims.md), a second and plain way to "
                    "compute the same",
                    limit ? " but a limiting case, exact_when" : "")};
  if (limit || any_tested({"golden", "unbiased", "exact-pairs"})) return {};
  return {
      "its formula has no anchor: method and transcription may share a misreading. Give exact_when, a limiting case, "
      "or golden, numbers of the authors' code (docs/claims.md)"};
}

std::vector<std::string> notes_of(const Subject& subject, const ClaimResults& results) {
  std::vector<std::string> notes;
  if (deciding(of_claim(results, "second-paths")).outcome == Outcome::fail)
    notes.push_back("its kernel is not what attend runs: exact-pairs, unbiased and variance say nothing of what runs");
  for (std::string& note : notes_on_proofs(subject, results)) notes.push_back(std::move(note));
  if (subject.fitted && subject.transcription && !subject.built_in)
    notes.emplace_back("nothing proves what it learns: the transcription reads that from the state");
  if (const Result differs = deciding(of_claim(results, "differs")); differs.reason.ends_with(equals_softmax))
    notes.push_back(differs.reason);
  if (!subject.cost_assumed && !tested(deciding(of_claim(results, "work")).outcome))
    notes.push_back("nothing proves its cost: --match flops=, recommend and submit rest on what it declares");
  else
    for (const Result& one : of_claim(results, "work"))
      if (one.reason.starts_with("unproved")) notes.push_back("its cost is " + one.reason);
  return notes;
}

}  // namespace

Outcome Report::outcome() const {
  Outcome gravest = Outcome::skipped;
  for (const SubjectReport& subject : subjects) gravest = std::max(gravest, deciding(subject.results).outcome);
  return gravest;
}

bool Report::tests_every_subject() const {
  return std::all_of(subjects.begin(), subjects.end(),
                     [](const SubjectReport& one) { return tested(deciding(one.results).outcome); });
}

int Report::exit_code() const {
  switch (outcome()) {
    case Outcome::fail:
      return 1;
    case Outcome::undecided:
      return 3;
    default:
      return tests_every_subject() ? 0 : 1;
  }
}

std::vector<std::pair<std::string, std::string>> claim_meanings() {
  std::vector<std::pair<std::string, std::string>> all;
  for (const auto& claim : structural_claims()) all.emplace_back(claim.name, claim.meaning);
  all.emplace_back("exact-pairs", "pairs (q, k) whose estimate has variance 0 give its mean in every draw");
  all.emplace_back("unbiased", "the kernel estimate's mean over draws is its closed form; finds 2 % of its scale");
  all.emplace_back("variance", "its mean squared error over draws is the closed form; finds 10 %");
  for (const auto& [name, meaning] : estimate_claims()) all.emplace_back(name, meaning);
  return all;
}

Report check(const std::vector<Subject>& subjects, const CheckSettings& settings,
             const std::function<void(const SubjectReport&)>& done) {
  Report report{.settings = settings};
  std::vector<KernelPlans> plans;
  std::vector<EstimatePlans> estimates;
  for (const Subject& subject : subjects) {
    plans.push_back(planned(subject, settings));
    estimates.push_back(planned_estimates(subject, settings));
    report.tests += plans.back().tests() + estimates.back().tests();
  }
  report.threshold = z_threshold(settings.error_rate, std::max(1.0, report.tests));
  for (size_t s = 0; s < subjects.size(); ++s) {
    SubjectReport one{.spec = subjects[s].params.spec(), .results = test_structural_claims(subjects[s], settings)};
    Context context(settings.threads);
    const ClaimResults kernel =
        guarded("unbiased", [&] { return test_kernel_claims(plans[s], report.threshold, settings.work, context); });
    one.results.insert(one.results.end(), kernel.begin(), kernel.end());
    const ClaimResults estimated = guarded(
        "mean-weights", [&] { return test_estimate_claims(estimates[s], report.threshold, settings.work, context); });
    one.results.insert(one.results.end(), estimated.begin(), estimated.end());
    mark_implied(subjects[s], one.results);
    one.notes = notes_of(subjects[s], one.results);
    report.subjects.push_back(std::move(one));
    if (done) done(report.subjects.back());
  }
  return report;
}

}  // namespace attnbench
