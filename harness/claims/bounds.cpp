// Claims on bounds of exact weights: those of logits, by which methods choose keys, and those of coarse weights.
#include "harness/core/bounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/claims/structural.hpp"

namespace attnbench {

namespace {

// By how much a logit is above its bound, in units of |q| |k|, at most over all pairs.
double above_bounds(const LogitBounds<double>& bounded, const Probe& one) {
  Context context;
  Matrix<double> bounds(one.shape.nq, one.shape.nk);
  bounded.logit_bounds(one.head.view(), one.shape.mask, 0, context, bounds);
  double most = -std::numeric_limits<double>::infinity();
  for (Index i = 0; i < one.shape.nq; ++i)
    for (Index j = 0; j < one.shape.mask.visible(i, one.shape.nk); ++j) {
      const auto q = one.head.Q.row(i), k = one.head.K.row(j);
      most = std::max(most, (q.dot(k) - bounds(i, j)) / (q.norm() * k.norm()));
    }
  return most;
}

// By how much the logarithm of a coarse weight is above that of the weights that it stands for, at most over all.
double above_weights(const std::vector<CoarseWeight>& all, const Probe& one) {
  double most = -std::numeric_limits<double>::infinity();
  for (const CoarseWeight& part : all) {
    double sum = 0;
    for (Index i = part.first_row; i < part.first_row + part.rows; ++i)
      for (const Index j : part.keys) sum += std::exp(one.head.Q.row(i).dot(one.head.K.row(j)) - part.log_weight);
    most = std::max(most, -std::log(sum));
  }
  return most;
}

// Of exact weights a method has the fewest with its least budget. Heads of tests are short, so that with the default
// budget all would be exact.
Params with_least_budget(Params params) {
  for (const Parameter& p : params.declared())
    if (p.budget) params = params.with(p.name, fmt::format("{:.0f}", p.minimum));
  return params;
}

}  // namespace

ClaimResults test_bounds(const Subject& subject, const Probes& probes, std::uint64_t seed) {
  constexpr const char* claim = "bounds";
  ClaimResults results;
  for (const Probe& one : probes) {
    const Params params = with_least_budget(subject.params);
    const auto method = Drawing(subject, params, one.shape, seed).draw<double>(0);
    const auto* bounded = logit_bounds(*method);
    const auto* coarse = coarse_weights(*method);
    if (!bounded && !coarse) return {skipped(claim, "it bounds no logits, and has no coarse weights")};
    if (bounded)
      results.push_back(
          compared(claim, "logits above their bounds, " + one.name(), above_bounds(*bounded, one), double_tolerance));
    if (!coarse) continue;
    Context context;
    const auto all = coarse->coarse_weights(one.head.view(), one.shape.mask, context);
    const std::string tested = fmt::format("coarse weights above exact ones, {}, {}", params.spec(), one.name());
    if (all.empty())
      return {{.claim = claim, .tested = tested, .outcome = Outcome::fail, .reason = "it lists no coarse weights"}};
    results.push_back(compared(claim, tested, above_weights(all, one), double_tolerance));
  }
  return results;
}

}  // namespace attnbench
