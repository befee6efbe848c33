// Claims that one draw decides, without statistics. Each gives at least one result.
#pragma once

#include "harness/claims/drawing.hpp"

namespace attnbench {

struct StructuralClaim {
  const char* name;
  const char* meaning;  // one line, for --help
  Results (*test)(const Subject&, std::uint64_t seed);
};

// second_paths.cpp. First of all: if it fails, what is said of the kernel says nothing of what runs.
Results test_second_paths(const Subject&, std::uint64_t seed);
// repeatable.cpp
Results test_repeatable(const Subject&, std::uint64_t seed);
// rows.cpp
Results test_row_sums(const Subject&, std::uint64_t seed);
Results test_non_negative(const Subject&, std::uint64_t seed);
Results test_permutation(const Subject&, std::uint64_t seed);
Results test_rank(const Subject&, std::uint64_t seed);
Results test_exact_when(const Subject&, std::uint64_t seed);
// causality.cpp
Results test_causality(const Subject&, std::uint64_t seed);
// large_norms.cpp
Results test_large_norms(const Subject&, std::uint64_t seed);
// geometry.cpp
Results test_geometry(const Subject&, std::uint64_t seed);

const std::vector<StructuralClaim>& structural_claims();

}  // namespace attnbench
