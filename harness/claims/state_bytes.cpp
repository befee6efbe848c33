// The bytes that a decoder says it keeps, against those that the process allocates. --match kv-bytes= and the tables of
// `decode` trust them, and a cache that forgets to drop tokens shows in nothing else.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/claims/structural.hpp"
#include "harness/core/torch_place.hpp"
#include "harness/machine/peak_memory.hpp"

namespace attnbench {

namespace {

constexpr const char* claim = "state-bytes";
constexpr double allowed = 1.5;
constexpr double slack = 1 << 13;  // objects, tables and scratch of one row
constexpr Index steps = 256;       // one after another, as some caches grow in steps alone

struct Kept {
  double said, grown;
};

// bytes() of a decoder of doubles after n tokens. Its declaration takes twice as much for each number as in float.
double said_in_double(const Drawing& drawing, const Probe& one) {
  const auto method = drawing.draw<double>(0);
  const auto decoder = method->decoder(drawing.shape());
  Context context;
  decoder->prefill(HeadPart<double>::tokens(one.head.view(), 0, one.shape.nk).view(), context);
  return static_cast<double>(decoder->bytes());
}

// After a prompt and some steps, n tokens in all.
Kept kept_after(const Approximation<float>& method, const Probe& one) {
  const Index n = one.shape.nk;
  const HeadData<float> head = one.head.cast<float>();
  const auto tokens = [&](Index first, Index count) { return HeadPart<float>::tokens(head.view(), first, count); };
  const auto prompt = tokens(0, n - steps);
  Context context;
  Matrix<float> row(1, one.shape.dv);
  const double before = allocated_bytes();
  const auto decoder = method.decoder(one.shape);
  decoder->prefill(prompt.view(), context);
  for (Index t = n - steps; t < n; ++t) decoder->step(tokens(t, 1).view(), context, row);
  return Kept{static_cast<double>(decoder->bytes()), allocated_bytes() - before};
}

// How many bytes one of the two numbers has beyond 1.5 times the other and the slack: 0 where the claim holds, so that
// reports of the same seed are equal.
double apart(double a, double b) { return std::max({0.0, a - allowed * b - slack, b - allowed * a - slack}); }

}  // namespace

ClaimResults test_state_bytes(const Subject& subject, const Probes&, std::uint64_t seed) {
  if (sanitized) return {skipped(claim, "the sanitizers' own memory counts as the program's")};
  if (computes_on_device(subject.params)) return {skipped(claim, "its memory is the device's")};
  ClaimResults results;
  for (const Index n : {512, 2048}) {
    const Shape shape{.nq = n, .nk = n, .d = 64, .dv = 64, .mask = {.causal = true}};
    if (!subject.claims(subject.params, shape).no_form.empty()) return {skipped(claim, "it has no causal form")};
    const auto method = Drawing(subject, subject.params, shape, seed, n).draw<float>(0);
    if (!method->decoder(shape)) return {skipped(claim, "it offers no decoder")};
    const Probe one = gaussian_probe(subject.params, shape, seed);
    // Caches of interpreters and libraries fill on the first calls, and what they free later counts as well: the best
    // of some calls.
    Kept kept = kept_after(*method, one);
    for (int again = 0; again < 3 && apart(kept.said, kept.grown) > 0; ++again) {
      const Kept next = kept_after(*method, one);
      if (apart(next.said, next.grown) < apart(kept.said, kept.grown)) kept = next;
    }
    const auto compare = [&](double said, const char* who) {
      Result result = compared(
          claim,
          fmt::format("bytes beyond a factor of {} and 8 KB between the {:.0f} {} and what was allocated, n = {}",
                      allowed, said, who, n),
          apart(said, kept.grown), 0);
      if (result.outcome == Outcome::fail)
        result.reason =
            fmt::format("{:.0f} were allocated{}", kept.grown,
                        subject.interpreted ? ", Python's objects included: an array for each token costs more "
                                              "than its numbers, and one that grows does not"
                                            : "");
      results.push_back(std::move(result));
    };
    compare(kept.said, "that bytes() says");
    if (!subject.decoder_bytes) continue;
    const double declared = subject.decoder_bytes(subject.params, shape);
    compare(declared, "declared");
    results.push_back(compared(claim, fmt::format("bytes() over the bytes declared, less 1, n = {}", n),
                               std::abs(kept.said / declared - 1), 0.1));
    Shape wide = shape;
    wide.precision = Precision::f64;
    results.push_back(compared(claim, fmt::format("bytes() over the bytes declared, less 1, in double, n = {}", n),
                               std::abs(said_in_double(Drawing(subject, subject.params, wide, seed, n), one) /
                                            subject.decoder_bytes(subject.params, wide) -
                                        1),
                               0.1));
  }
  return results;
}

}  // namespace attnbench
