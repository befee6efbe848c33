// Claims that one draw decides without statistics. Each gives at least one result.
#pragma once

#include "harness/claims/drawing.hpp"

namespace attnbench {

struct StructuralClaim {
  const char* name;
  const char* meaning;  // one line, for --help
  ClaimResults (*test)(const Subject&, std::uint64_t seed);
};

// second_paths.cpp. Tested first: if it fails, results on the kernel say nothing about the path that runs.
ClaimResults test_second_paths(const Subject&, std::uint64_t seed);
// repeatable.cpp
ClaimResults test_repeatable(const Subject&, std::uint64_t seed);
ClaimResults test_inputs_kept(const Subject&, std::uint64_t seed);
// rows.cpp
ClaimResults test_linear(const Subject&, std::uint64_t seed);
ClaimResults test_row_sums(const Subject&, std::uint64_t seed);
ClaimResults test_non_negative(const Subject&, std::uint64_t seed);
ClaimResults test_permutation(const Subject&, std::uint64_t seed);
ClaimResults test_rank(const Subject&, std::uint64_t seed);
ClaimResults test_exact_when(const Subject&, std::uint64_t seed);
// causality.cpp
ClaimResults test_causality(const Subject&, std::uint64_t seed);
// large_norms.cpp
ClaimResults test_large_norms(const Subject&, std::uint64_t seed);
// geometry.cpp
ClaimResults test_geometry(const Subject&, std::uint64_t seed);

const std::vector<StructuralClaim>& structural_claims();

}  // namespace attnbench
