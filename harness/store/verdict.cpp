#include "harness/store/verdict.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace attnbench {

std::string to_string(Ruling ruling) {
  switch (ruling) {
    case Ruling::holds:
      return "HOLDS";
    case Ruling::refuted:
      return "REFUTED";
    case Ruling::not_seen:
      return "NOT SEEN";
    case Ruling::open:
      return "OPEN";
    case Ruling::depends:
      return "DEPENDS";
    case Ruling::measured:
      return "MEASURED";
  }
  throw std::logic_error("a verdict with an unknown ruling");
}

namespace {

constexpr std::array rulings{Ruling::holds, Ruling::refuted, Ruling::not_seen,
                             Ruling::open,  Ruling::depends, Ruling::measured};

}  // namespace

std::optional<Ruling> ruling_named(std::string_view name) {
  const auto found = std::ranges::find(rulings, name, [](Ruling ruling) { return to_string(ruling); });
  return found == rulings.end() ? std::nullopt : std::optional(*found);
}

std::string all_rulings() {
  std::string all;
  for (const Ruling ruling : rulings)
    all += (all.empty() ? "" : ruling == rulings.back() ? " or " : ", ") + to_string(ruling);
  return all;
}

std::string to_string(StatementKind kind) {
  return kind == StatementKind::paper ? "paper" : kind == StatementKind::own ? "own" : "code";
}

bool contradicts_expectation(const Verdict& verdict) {
  const Ruling found = verdict.finding.ruling, expected = verdict.statement.expected;
  return found != Ruling::open && found != Ruling::measured && expected != Ruling::open && found != expected;
}

}  // namespace attnbench
