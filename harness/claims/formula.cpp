// A method's own transcription of its formula, written without the code that it proves. No other test finds a wrong
// formula: the other claims compare a method with itself.
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "harness/claims/structural.hpp"

namespace attnbench {

ClaimResults test_formula(const Subject& subject, const Probes& probes, std::uint64_t seed) {
  constexpr const char* claim = "formula";
  if (!subject.transcription)
    return {skipped(claim, subject.built_in ? "attnbench's own tests compare it with a transcription (tests/oracle)"
                                            : "it gives no transcription of its formula")};
  ClaimResults results;
  for (const Probe& given : probes) {
    const Probe one = with_all_bits(given, seed);
    const Drawing drawing(subject, subject.params, one.shape, seed);
    const auto method = drawing.draw<double>(0);
    const Matrix<double> want = drawing.transcribed(subject.transcription, *method, one);
    if (want.size() == 0) continue;  // not for this mask
    if (want.rows() != one.shape.nq || want.cols() != one.shape.dv)
      throw std::runtime_error(fmt::format("the transcription gives {} x {} numbers; expected {} x {}", want.rows(),
                                           want.cols(), one.shape.nq, one.shape.dv));
    results.push_back(compare_rows(
        claim, "attend against the transcription, " + one.name(), attended(*method, one.head, one.shape.mask), want,
        row_conditions(*method, one, subject.claims(subject.params, one.shape).non_negative, seed), size_of(one.head.V),
        double_tolerance));
  }
  return results;
}

ClaimResults test_golden(const Subject& subject, const Probes&, std::uint64_t seed) {
  constexpr const char* claim = "golden";
  if (!subject.golden) return {skipped(claim, "it names no numbers of its authors' code")};
  ClaimResults results;
  for (const Golden& one : subject.golden(subject.params)) {
    const Probe probe{{.nq = one.head.Q.rows(),
                       .nk = one.head.K.rows(),
                       .d = one.head.Q.cols(),
                       .dv = one.head.V.cols(),
                       .mask = one.mask},
                      one.head};
    const auto method = Drawing(subject, subject.params, probe.shape, seed).draw<double>(0);
    // The authors' code rounds as well, in its own type and order: 256 units of it, and a thousand of double's.
    const double limit = std::max(256 * one.spacing, 1e-12);
    results.push_back(compare_rows(
        claim, fmt::format("attend against {}, {}", one.name, probe.name()), attended(*method, one.head, one.mask),
        one.out, row_conditions(*method, probe, subject.claims(subject.params, probe.shape).non_negative, seed),
        size_of(one.head.V), limit));
  }
  if (results.empty()) return {skipped(claim, "its numbers of the authors' code are of other parameters")};
  return results;
}

}  // namespace attnbench
