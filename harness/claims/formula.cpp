// A method's own transcription of its formula, written without the code that it proves. No other test finds a wrong
// formula: the other claims compare a method with itself.
#include <fmt/format.h>

#include <stdexcept>

#include "harness/claims/structural.hpp"

namespace attnbench {

ClaimResults test_formula(const Subject& subject, const Probes& probes, std::uint64_t seed) {
  constexpr const char* claim = "formula";
  if (!subject.transcription)
    return {skipped(claim, subject.built_in ? "attnbench's own tests compare it with a transcription (tests/oracle)"
                                            : "it gives no transcription of its formula")};
  ClaimResults results;
  for (const Probe& one : probes) {
    const Drawing drawing(subject, subject.params, one.shape, seed);
    const auto method = drawing.draw<double>(0);
    const Matrix<double> want = drawing.transcribed(subject.transcription, *method, one);
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

}  // namespace attnbench
