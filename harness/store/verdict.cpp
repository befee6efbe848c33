#include "harness/store/verdict.hpp"

#include <stdexcept>

namespace attnbench {

std::string to_string(Ruling ruling) {
  switch (ruling) {
    case Ruling::holds:
      return "HOLDS";
    case Ruling::refuted:
      return "REFUTED";
    case Ruling::open:
      return "OPEN";
    case Ruling::depends:
      return "DEPENDS";
    case Ruling::measured:
      return "MEASURED";
  }
  throw std::logic_error("a verdict with an unknown ruling");
}

std::optional<Ruling> ruling_named(std::string_view name) {
  for (const Ruling ruling : {Ruling::holds, Ruling::refuted, Ruling::open, Ruling::depends, Ruling::measured})
    if (to_string(ruling) == name) return ruling;
  return std::nullopt;
}

bool contradicts_expectation(const Verdict& verdict) {
  const Ruling found = verdict.finding.ruling, expected = verdict.statement.expected;
  return found != Ruling::open && found != Ruling::measured && expected != Ruling::open && found != expected;
}

}  // namespace attnbench
