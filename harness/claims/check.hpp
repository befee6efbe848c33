// The claims gate: tests everything that subjects claim, at one family-wise error rate.
#pragma once

#include "harness/claims/estimate_claims.hpp"
#include "harness/claims/kernel_claims.hpp"
#include "harness/claims/structural.hpp"

namespace attnbench {

struct CheckSettings {
  std::uint64_t seed = 1;
  double error_rate = 1e-6;  // probability that any statistical test of a correct program fails
  int threads = 1;
  double work = default_work;  // limit on the draws of one subject in one dimension
  bool asked_budget = false;   // test kernels at the spec's own number of projection vectors as well
};

struct SubjectReport {
  std::string spec;
  ClaimResults results;            // claim by claim
  std::vector<std::string> notes;  // what the results do not show: what nothing proves, what others rest on
};

struct Report {
  std::vector<SubjectReport> subjects;
  CheckSettings settings;
  double tests = 0, threshold = 0;  // number of statistical tests, and the limit on |z|
  Outcome outcome() const;          // the gravest
  // false: something, such as its own claims, keeps every test from a subject.
  bool tests_every_subject() const;
  // 0; 1 for a failure, and where nothing of a subject was tested; 3 if claims are undecided and none failed
  int exit_code() const;
};

// The names of all claims in the order of testing, with one-line meanings.
std::vector<std::pair<std::string, std::string>> claim_meanings();

// Calls done with each subject's report as soon as it exists. If a subject refuses a configuration (Misuse, Skip), the
// claim is skipped with the reason. NaN, infinity and other exceptions of a method fail the claim. The results do not
// depend on the number of threads.
Report check(const std::vector<Subject>& subjects, const CheckSettings& settings,
             const std::function<void(const SubjectReport&)>& done = {});

}  // namespace attnbench
