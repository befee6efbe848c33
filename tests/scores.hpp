// Statistical tests with a stated family-wise error rate: z-scores are collected, and the largest of a family is
// compared with the threshold that its size asks for.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/statistics/intervals.hpp"
#include "tests/catch.hpp"

namespace attnbench {

// Over the three base seeds of each grid together. Seeds are fixed, so a test that passes keeps passing; the rate says
// how often a correct program would fail after a change of its numbers.
constexpr double family_error_rate = 1e-3;
constexpr std::uint64_t base_seeds[] = {1, 2, 3};

struct Score {
  std::string what;
  double z;
};
using Scores = std::vector<Score>;

inline void append(Scores& all, const Scores& more) { all.insert(all.end(), more.begin(), more.end()); }

inline Score largest(const Scores& scores) {
  Score worst{"", 0};
  for (const Score& s : scores)
    if (!(std::abs(s.z) <= std::abs(worst.z))) worst = s;  // not a number is the largest
  return worst;
}

inline double threshold(const Scores& family) {
  return z_threshold(family_error_rate, static_cast<double>(family.size()));
}

// The whole family at its rate.
inline void check_family(const Scores& family) {
  const Score worst = largest(family);
  CAPTURE(family.size(), threshold(family), worst.what, worst.z);
  CHECK(std::abs(worst.z) < threshold(family));
}

// A planted bug must go red by the threshold of the family that is to find it.
inline void check_found(const std::string& planted, const Scores& scores, double family_threshold) {
  const Score worst = largest(scores);
  CAPTURE(planted, family_threshold, worst.what, worst.z);
  CHECK(std::abs(worst.z) > family_threshold);
}

}  // namespace attnbench
