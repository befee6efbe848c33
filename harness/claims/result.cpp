#include "harness/claims/result.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace attnbench {

Result skipped(std::string claim, std::string reason) {
  return {.claim = std::move(claim), .tested = "", .outcome = Outcome::skipped, .reason = std::move(reason)};
}

Result compared(std::string claim, std::string tested, double deviation, double limit) {
  if (std::isnan(deviation)) deviation = std::numeric_limits<double>::infinity();
  return {.claim = std::move(claim),
          .tested = std::move(tested),
          .outcome = deviation <= limit ? Outcome::pass : Outcome::fail,
          .deviation = deviation,
          .limit = limit};
}

double worse(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::infinity() : std::max(a, b);
}

const Result& deciding(const ClaimResults& results) {
  assert(!results.empty());
  const auto magnitude = [](const Result& r) {
    const double size = r.evidence ? std::abs(r.evidence->z) : r.deviation;
    return std::isnan(size) ? std::numeric_limits<double>::infinity() : size;
  };
  return *std::max_element(results.begin(), results.end(), [&](const Result& a, const Result& b) {
    return a.outcome != b.outcome ? a.outcome < b.outcome : magnitude(a) < magnitude(b);
  });
}

ClaimResults of_claim(const ClaimResults& results, const std::string& claim) {
  ClaimResults chosen;
  std::copy_if(results.begin(), results.end(), std::back_inserter(chosen),
               [&](const Result& r) { return r.claim == claim; });
  return chosen;
}

const char* name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::skipped:
      return "SKIPPED";
    case Outcome::implied:
      return "IMPLIED";
    case Outcome::pass:
      return "PASS";
    case Outcome::undecided:
      return "UNDECIDED";
    case Outcome::fail:
      return "FAIL";
  }
  return "";
}

}  // namespace attnbench
