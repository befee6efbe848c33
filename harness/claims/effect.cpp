// A parameter that nothing reads is the commonest silent mistake: the method is on, and the number that its user set
// changes nothing. Every parameter has to change the output for some other value, or to say that it only changes how
// the computation goes (Parameter::numerics), and then to change nothing but rounding.
#include <fmt/format.h>

#include <algorithm>

#include "harness/claims/structural.hpp"
#include "harness/claims/variations.hpp"
#include "harness/core/torch_place.hpp"

namespace attnbench {

namespace {

constexpr const char* claim = "effect";
constexpr double least_effect = 1e-9;  // of the size of V: rounding is below 1e-12

// The outputs of a spec on the probes, and its decoded rows, which some parameters change alone.
class Shown {
 public:
  Shown(const Subject& subject, const Params& params, const Probes& probes, std::uint64_t seed) {
    for (const Probe& given : probes) {
      const Probe one = for_method(given, params, seed);
      const auto method = drawn_if_possible(subject, params, one.shape, seed);
      outputs_.push_back(method ? attended(*method, one.head, one.shape.mask) : Matrix<double>());
      const bool decodes = method && one.shape.mask == Mask{.causal = true} && one.shape.nq == one.shape.nk;
      outputs_.push_back(decodes ? decoded(*method, one.shape, one.head, std::max<Index>(0, one.shape.nk - 8))
                                 : Matrix<double>());
      refused_ = refused_ && !method;
    }
    // Another place of the model shows what heads, replicates and layers share or divide.
    if (outputs_[0].size() == 0) return;
    const Probe one = for_method(probes[0], params, seed);
    outputs_.push_back(
        attended(*Drawing(subject, params, one.shape, seed).draw_for<double>(seed, 1, 1, {.layer = 0, .layers = 3}),
                 one.head, one.shape.mask));
  }

  bool refused() const { return refused_; }

  // The largest difference of two numbers at the same place.
  double distance(const Shown& other) const {
    double most = 0;
    for (size_t i = 0; i < std::min(outputs_.size(), other.outputs_.size()); ++i) {
      const auto &a = outputs_[i], &b = other.outputs_[i];
      if (a.size() > 0 && a.rows() == b.rows() && a.cols() == b.cols())
        most = worse(most, (a - b).cwiseAbs().maxCoeff());
    }
    return most;
  }

 private:
  std::vector<Matrix<double>> outputs_;
  bool refused_ = true;
};

// Tries the parameter's other values beside the spec's, and returns the first that changes the output.
struct Found {
  std::string by;          // "window=8"; empty: none
  double distance = 0;     // the largest
  std::string tried = {};  // all values that the method took
};

Found find_effect(const Subject& subject, const Params& spec, const Parameter& p, const Probes& probes,
                  std::uint64_t seed) {
  constexpr size_t most_values = 12;
  Found found;
  const Shown own(subject, spec, probes, seed);
  size_t taken = 0;
  for (const Params& other : other_values(spec, p)) {
    const Shown shown(subject, other, probes, seed);
    if (shown.refused()) continue;
    const std::string by = difference_of(other, spec);
    found.tried += (found.tried.empty() ? "" : ", ") + by;
    found.distance = std::max(found.distance, own.distance(shown));
    if (found.distance > least_effect) return {by, found.distance, found.tried};
    if (++taken == most_values) break;
  }
  return found;
}

// The spec with each number above 8 at 8, so that blocks, windows and budgets lie inside the short heads.
Params small(Params spec) {
  for (const Parameter& p : std::vector<Parameter>(spec.declared())) {
    if (p.kind != Parameter::Kind::integer || spec.text(p.name) == p.word || spec.integer(p.name) <= 8) continue;
    try {
      const Params smaller = spec.with(p.name, std::to_string(std::max<Index>(8, static_cast<Index>(p.minimum))));
      find<MethodEntry>(spec.name()).check(smaller);
      spec = smaller;
    } catch (const Misuse&) {  // contradicts the others
    }
  }
  return spec;
}

// A parameter may act beside others only: in a form that is chosen, with a budget that does not hold every key.
std::vector<Params> bases_of(const Params& spec, const Parameter& p) {
  std::vector<Params> bases{small(spec)};
  for (const Parameter& beside : spec.declared()) {
    if (beside.name == p.name) continue;
    for (const Params& other : other_values(spec, beside)) {
      if (!other.has(p.name)) continue;
      bases.push_back(other);
      bases.push_back(small(other));
    }
  }
  return bases;
}

Found find_effect_beside_others(const Subject& subject, const Parameter& p, const Probes& probes, std::uint64_t seed) {
  for (const Params& base : bases_of(subject.params, p)) {
    const auto& declared = base.declared();
    const auto same = std::find_if(declared.begin(), declared.end(), [&](const auto& q) { return q.name == p.name; });
    Found found = find_effect(subject, base, *same, probes, seed);
    if (found.by.empty()) continue;
    found.by += " beside " + difference_of(base, subject.params);
    return found;
  }
  return {};
}

Result test_parameter(const Subject& subject, const Parameter& p, const Probes& probes, std::uint64_t seed) {
  Found found = find_effect(subject, subject.params, p, probes, seed);
  if (found.tried.empty() && found.by.empty())
    return skipped(claim, fmt::format("no other value of {} is known that the method takes", p.name));
  if (p.numerics)
    return compared(claim, fmt::format("{}, which says that it changes rounding only", found.tried), found.distance,
                    least_effect);
  if (found.by.empty()) found = find_effect_beside_others(subject, p, probes, seed);
  if (!found.by.empty())
    return {.claim = claim, .tested = fmt::format("{} changes the output", found.by), .outcome = Outcome::pass};
  if (p.published)
    return skipped(claim, p.name + " reproduces a deviation that changes no output here, such as one of gradients");
  return {.claim = claim,
          .tested = p.name,
          .outcome = Outcome::fail,
          .reason =
              "no other value changes the output, alone or beside another parameter's. Does anything read it? If "
              "it changes rounding only, declare it so (numerics)"};
}

}  // namespace

ClaimResults test_effect(const Subject& subject, const Probes& given, std::uint64_t seed) {
  if (given.empty()) return {};
  // Keys that lie close together tell apart what far ones do not, such as how a coreset balances them. Values that are
  // mostly 0 and never below show weights below 0, and what clips them.
  Probes probes = given;
  for (const double scale : {0.25, 3.0}) {
    probes.push_back(given[std::min<size_t>(1, given.size() - 1)]);
    probes.back().head.Q *= scale;
    probes.back().head.K *= scale;
    probes.back().head.V = (probes.back().head.V.array() - 1.5).max(0);
  }
  ClaimResults results;
  for (const Parameter& p : subject.params.declared()) {
    if (p.kind == Parameter::Kind::text || is_torch_place(subject.params, p.name)) continue;
    results.push_back(test_parameter(subject, p, probes, seed));
  }
  if (results.empty()) return {skipped(claim, "it has no parameters")};
  return results;
}

}  // namespace attnbench
