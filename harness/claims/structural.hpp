// Claims that one draw decides without statistics. Each gives at least one result; a claim that gives none for the
// heads at hand is reported as skipped.
#pragma once

#include "harness/claims/drawing.hpp"

namespace attnbench {

struct StructuralClaim {
  const char* name;
  const char* meaning;  // one line, for --help
  ClaimResults (*test)(const Subject&, const Probes&, std::uint64_t seed);
  bool alone = false;  // measures the whole process, so that nothing may run beside it
};

// formula.cpp
ClaimResults test_formula(const Subject&, const Probes&, std::uint64_t seed);
ClaimResults test_golden(const Subject&, const Probes&, std::uint64_t seed);
// second_paths.cpp. If it fails, results on the kernel say nothing about the path that runs.
ClaimResults test_second_paths(const Subject&, const Probes&, std::uint64_t seed);
ClaimResults test_pattern(const Subject&, const Probes&, std::uint64_t seed);
// precision.cpp
ClaimResults test_precision(const Subject&, const Probes&, std::uint64_t seed);
// repeatable.cpp
ClaimResults test_repeatable(const Subject&, const Probes&, std::uint64_t seed);
ClaimResults test_inputs_kept(const Subject&, const Probes&, std::uint64_t seed);
// state.cpp
ClaimResults test_draws(const Subject&, const Probes&, std::uint64_t seed);
ClaimResults test_state(const Subject&, const Probes&, std::uint64_t seed);
// masks.cpp
ClaimResults test_views(const Subject&, const Probes&, std::uint64_t seed);
ClaimResults test_padding(const Subject&, const Probes&, std::uint64_t seed);
ClaimResults test_empty_rows(const Subject&, const Probes&, std::uint64_t seed);
// causality.cpp
ClaimResults test_causality(const Subject&, const Probes&, std::uint64_t seed);
// heads.cpp
ClaimResults test_heads(const Subject&, const Probes&, std::uint64_t seed);
// decoder.cpp
ClaimResults test_decoder(const Subject&, const Probes&, std::uint64_t seed);
// gradients.cpp
ClaimResults test_gradients(const Subject&, const Probes&, std::uint64_t seed);
// rows.cpp
ClaimResults test_linear(const Subject&, const Probes&, std::uint64_t seed);
ClaimResults test_row_sums(const Subject&, const Probes&, std::uint64_t seed);
ClaimResults test_non_negative(const Subject&, const Probes&, std::uint64_t seed);
ClaimResults test_permutation(const Subject&, const Probes&, std::uint64_t seed);
ClaimResults test_equal_keys(const Subject&, const Probes&, std::uint64_t seed);
ClaimResults test_rank(const Subject&, const Probes&, std::uint64_t seed);
ClaimResults test_exact_when(const Subject&, const Probes&, std::uint64_t seed);
// bounds.cpp
ClaimResults test_bounds(const Subject&, const Probes&, std::uint64_t seed);
// declared.cpp
ClaimResults test_work(const Subject&, const Probes&, std::uint64_t seed);
ClaimResults test_memory(const Subject&, const Probes&, std::uint64_t seed);
ClaimResults test_budget(const Subject&, const Probes&, std::uint64_t seed);
// finite.cpp
ClaimResults test_finite(const Subject&, const Probes&, std::uint64_t seed);
// lengths.cpp
ClaimResults test_lengths(const Subject&, const Probes&, std::uint64_t seed);
// threads.cpp
ClaimResults test_threads(const Subject&, const Probes&, std::uint64_t seed);
// effect.cpp
ClaimResults test_effect(const Subject&, const Probes&, std::uint64_t seed);
// differs.cpp. Skipped with these last words where attend equals softmax and nothing says whether that is meant.
inline constexpr const char* equals_softmax = ": is anything approximated?";
ClaimResults test_differs(const Subject&, const Probes&, std::uint64_t seed);
// state_bytes.cpp
ClaimResults test_state_bytes(const Subject&, const Probes&, std::uint64_t seed);
// geometry.cpp
ClaimResults test_geometry(const Subject&, const Probes&, std::uint64_t seed);
ClaimResults test_nested(const Subject&, const Probes&, std::uint64_t seed);

const std::vector<StructuralClaim>& structural_claims();

}  // namespace attnbench
