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
  ClaimResults results;  // claim by claim
  std::string warning;   // consequence of a failure for the other results
};

struct Report {
  std::vector<SubjectReport> subjects;
  CheckSettings settings;
  double tests = 0, threshold = 0;  // number of statistical tests, and the limit on |z|
  Outcome outcome() const;          // the gravest
  int exit_code() const;            // 0; 1 for a failure; 3 if claims are undecided and none failed
};

// The names of all claims in the order of testing, with one-line meanings.
std::vector<std::pair<std::string, std::string>> claim_meanings();

// Calls done with each subject's report as soon as it exists. If a subject refuses a configuration (Misuse, Skip), the
// claim is skipped with the reason. NaN, infinity and other exceptions of a method fail the claim. The results do not
// depend on the number of threads.
Report check(const std::vector<Subject>& subjects, const CheckSettings& settings,
             const std::function<void(const SubjectReport&)>& done = {});

}  // namespace attnbench
