// Statements that two results files judge differently.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/store/verdict.hpp"

namespace attnbench {

// One statement of a recipe that both files judge.
struct ComparedClaim {
  enum class Outcome {
    same,       // the same verdict
    better,     // B has the expected verdict and A does not
    worse,      // A has the expected verdict and B does not
    differs,    // both are decided, neither as expected, or nothing was expected
    ambiguous,  // only one of them is decided
  };
  std::string recipe, statement;
  Ruling a, b, expected;
  Outcome outcome = Outcome::same;
  std::string size_a, size_b;  // "quick"
};

struct ComparedClaims {
  std::vector<ComparedClaim> claims;
  std::vector<std::string> only_a, only_b;  // "recipe: statement"
};

// Matches statements by recipe and text. The expectation is the one in B. Throws Misuse when a path is not a results
// file.
ComparedClaims compare_claims(const std::filesystem::path& a, const std::filesystem::path& b);

}  // namespace attnbench
