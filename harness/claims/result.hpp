// The result of testing a claim.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/statistics/intervals.hpp"

namespace attnbench {

// Ordered: with several tests the last outcome decides. implied: it holds by construction, and was not tested.
enum class Outcome { skipped, implied, pass, undecided, fail };

// Evidence of a test over draws. effect: the deviation of the mean, in the unit that the test states. interval: of the
// effect, at the error rate of the whole family. of_mean: the effect as a share of the expected mean, if the unit is
// another.
struct Evidence {
  double z = 0, effect = 0;
  Interval interval;
  double draws = 0;
  std::optional<double> of_mean = {};
  double draws_to_decide = 0;  // if undecided: the number that would find the least effect that the test promises
};

struct Result {
  std::string claim;   // "unbiased"
  std::string tested;  // "d = 4, m = 10: q + k along +e1"
  Outcome outcome = Outcome::skipped;
  std::string reason = {};                // why it was skipped, or what was wrong besides the numbers
  std::string implied = {};               // by what the claim holds by construction; empty: it does not
  double deviation = 0, limit = 0;        // of a deterministic test
  std::optional<Evidence> evidence = {};  // of a statistical test
};
using ClaimResults = std::vector<Result>;

Result skipped(std::string claim, std::string reason);
// Passes when deviation <= limit; NaN does not pass.
Result compared(std::string claim, std::string tested, double deviation, double limit);

// The larger deviation; infinite if either is NaN.
double worse(double a, double b);

// The result that decides for a claim: the gravest outcome, and among those the largest deviation.
const Result& deciding(const ClaimResults& results);
// The results of one claim, in order; empty when it was not tested.
ClaimResults of_claim(const ClaimResults& results, const std::string& claim);

const char* name_of(Outcome outcome);
// Whether a test was made.
inline bool tested(Outcome outcome) { return outcome > Outcome::implied; }

}  // namespace attnbench
