#include "harness/store/verdict.hpp"

#include <stdexcept>

namespace attnbench {

std::string to_string(Ruling ruling) {
  switch (ruling) {
    case Ruling::pass:
      return "PASS";
    case Ruling::fail:
      return "FAIL";
    case Ruling::ambiguous:
      return "AMBIGUOUS";
    case Ruling::conditional:
      return "CONDITIONAL";
    case Ruling::measured:
      return "MEASURED";
  }
  throw std::logic_error("a verdict with an unknown ruling");
}

bool contradicts_expectation(const Verdict& verdict) {
  const Ruling found = verdict.finding.ruling, expected = verdict.statement.expected;
  return found != Ruling::ambiguous && found != Ruling::measured && expected != Ruling::ambiguous && found != expected;
}

}  // namespace attnbench
