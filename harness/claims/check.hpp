// The claims gate: everything that subjects claim, tested at one family-wise error rate.
#pragma once

#include "harness/claims/kernel_claims.hpp"
#include "harness/claims/structural.hpp"

namespace attnbench {

struct CheckSettings {
  std::uint64_t seed = 1;
  double error_rate = 1e-6;  // that any statistical test of a correct program fails
  int threads = 1;
  double work = default_work;  // of the draws of one subject in one dimension
};

struct SubjectReport {
  std::string spec;
  ClaimResults results;  // claim by claim
  std::string warning;   // what a failure says of the other results
};

struct Report {
  std::vector<SubjectReport> subjects;
  CheckSettings settings;
  double tests = 0, threshold = 0;  // statistical ones, and what |z| may be
  Outcome outcome() const;          // the gravest
  int exit_code() const;            // 0, 1 for a failure, 3 for undecided claims beside passes
};

// The names of all claims, in the order in which they are tested, with their one-line meanings.
std::vector<std::pair<std::string, std::string>> claim_meanings();

// done is called with each subject's report as soon as it is there. What a subject refuses to be (Misuse, Skip) is
// skipped with the reason; numbers that are none and other exceptions of a method fail the claim. The results do not
// depend on the number of threads.
Report check(const std::vector<Subject>& subjects, const CheckSettings& settings,
             const std::function<void(const SubjectReport&)>& done = {});

}  // namespace attnbench
