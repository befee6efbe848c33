// A method that computes exact softmax on every head, though nothing says so, approximates nothing: a branch that is
// never taken, a budget that nothing reads, numbers that are rounded and then not used.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/claims/structural.hpp"
#include "harness/claims/variations.hpp"

namespace attnbench {

namespace {

constexpr const char* claim = "differs";

Matrix<double> softmax_of(const Probe& one) {
  Matrix<double> out = Matrix<double>::Zero(one.shape.nq, one.shape.dv);
  for (Index i = 0; i < out.rows(); ++i) {
    const Index seen = one.shape.mask.visible(i, one.shape.nk);
    if (seen == 0) continue;
    const Eigen::RowVectorXd logits = one.head.Q.row(i) * one.head.K.topRows(seen).transpose();
    const Eigen::RowVectorXd weights = (logits.array() - logits.maxCoeff()).exp();
    out.row(i) = weights / weights.sum() * one.head.V.topRows(seen);
  }
  return out;
}

// The largest difference from softmax on the probes that the method takes; nullopt if it takes none.
std::optional<double> distance(const Subject& subject, const Params& params, const Probes& probes, std::uint64_t seed) {
  std::optional<double> most;
  for (const Probe& one : probes)
    if (const auto method = drawn_if_possible(subject, params, one.shape, seed))
      most = worse(most.value_or(0),
                   (attended(*method, one.head, one.shape.mask) - softmax_of(one)).cwiseAbs().maxCoeff());
  return most;
}

// Whether the method says that these parameters make it softmax.
bool says_so(const Subject& subject, const Params& params, const Shape& shape) {
  const auto is_softmax = [&](const std::string& when) {
    if (when == exact_always) return true;
    if (when.find(" is ") != std::string::npos) return false;
    Params exact = params;
    for (const auto& [key, value] : parse_spec("assignments:" + when).arguments) exact = exact.with(key, value);
    return exact.spec() == params.spec();
  };
  const std::vector<std::string> cases = cases_of(subject.claims(params, shape).exact_when);
  return std::any_of(cases.begin(), cases.end(), is_softmax);
}

// A head that is longer than what methods keep whole by default, such as the newest 128 tokens.
Probes long_head(const Subject& subject, std::uint64_t seed) {
  Shape shape{.nq = 1100, .nk = 1100, .d = 8, .dv = 5};
  shape.mask.causal = !subject.claims(subject.params, shape).no_form.empty();
  return {gaussian_probe(subject.params, shape, seed)};
}

}  // namespace

ClaimResults test_differs(const Subject& subject, const Probes& probes, std::uint64_t seed) {
  // Rounding of a thousand terms in double, in rows with a condition of up to 1000, is below this.
  constexpr double equal = 1e-9;
  if (probes.empty()) return {};
  if (says_so(subject, subject.params, probes.front().shape)) return {skipped(claim, "it says that it is softmax")};
  const auto differs = [&](const Params& params, const Probes& on) {
    return distance(subject, params, on, seed) > equal;
  };
  const Index n = probes.back().shape.nk;
  if (differs(subject.params, probes))
    return {{.claim = claim,
             .tested = fmt::format("softmax's output is another one, n = {}", n),
             .outcome = Outcome::pass}};
  const std::vector<Params> tighter = with_small_budgets(subject.params);
  for (const Params& tight : tighter)
    if (differs(tight, probes))
      return {{.claim = claim,
               .tested = fmt::format("softmax's output is another one with {}, n = {}",
                                     difference_of(tight, subject.params), n),
               .outcome = Outcome::pass}};
  const Params& tight = tighter.empty() ? subject.params : tighter.back();
  const Probes longer = long_head(subject, seed);
  if (differs(tight, longer))
    return {{.claim = claim, .tested = "softmax's output is another one, n = 1100", .outcome = Outcome::pass}};
  const std::string tested =
      fmt::format("its output{} is exact softmax's on all heads up to n = 1100",
                  tighter.empty() ? std::string() : " with " + difference_of(tight, subject.params));
  const auto& declared = tight.declared();
  if (std::none_of(declared.begin(), declared.end(),
                   [&](const Parameter& p) { return p.budget && tight.integer(p.name) < 1100; }))
    return {skipped(claim, tested + equals_softmax)};
  return {
      {.claim = claim,
       .tested = tested,
       .outcome = Outcome::fail,
       .reason = fmt::format("its budget is below n, and it approximates nothing. If that is meant, claim exact_when "
                             "= \"{}\"",
                             exact_always)}};
}

}  // namespace attnbench
