// Which statements two results files judge otherwise.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/store/store.hpp"

namespace attnbench {

// One statement of a recipe that both files judge.
struct ComparedClaim {
  enum class Outcome {
    same,       // the same verdict
    better,     // B has the expected verdict and A has not
    worse,      // A has, and B has not
    differs,    // both decided, neither as expected: or nothing was expected
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

// By recipe and statement. What is expected is what B says. Throws Misuse when a path is no results file.
ComparedClaims compare_claims(const std::filesystem::path& a, const std::filesystem::path& b);

}  // namespace attnbench
