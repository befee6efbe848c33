// Draws and states: each seed, head and replicate has its own numbers, float and double share them, what is learnt
// depends on the head that it is learnt from, and the state makes an instance again.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "harness/claims/structural.hpp"
#include "harness/claims/variations.hpp"
#include "harness/core/torch_place.hpp"

namespace attnbench {

namespace {

// The state of an instance, and its output for the probe. The output shows draws that the state does not.
Tensors shown_by(const Drawing& drawing, const Probe& one, std::uint64_t seed, Index head, Index replicate) {
  const auto method = drawing.draw_for<double>(seed, head, replicate);
  Tensors shown = method->state();
  shown.emplace("the output", attended(*method, one.head, one.shape.mask));
  return shown;
}

bool same(const Tensors& a, const Tensors& b, const std::string& name) {
  const auto other = b.find(name);
  return other != b.end() && differing_numbers(a.at(name), other->second) == 0;
}

Result equal_or_not(const std::string& what, bool equal, bool should_be) {
  Result result = compared("draws", what, equal == should_be ? 0 : 1, 0);
  if (equal != should_be) result.reason = should_be ? "it is another one" : "it is the same one";
  return result;
}

// The largest difference between what a draw shows in float and in double, relative to the tensor's largest entry.
Result compare_precisions(const Drawing& drawing) {
  const Tensors single = drawing.draw<float>(0)->state(), exact = drawing.draw<double>(0)->state();
  double worst = single.size() == exact.size() ? 0 : INFINITY;
  for (const auto& [name, tensor] : exact) {
    const auto found = single.find(name);
    const bool fits =
        found != single.end() && found->second.rows() == tensor.rows() && found->second.cols() == tensor.cols();
    if (fits && tensor.size() == 0) continue;
    const double size = fits ? tensor.cwiseAbs().maxCoeff() : 1;
    worst = worse(worst, fits ? (found->second - tensor).cwiseAbs().maxCoeff() / (size == 0 ? 1 : size) : INFINITY);
  }
  // Float rounds what was drawn in double; what a method computes from its draw may round some more.
  return compared("draws", "the state in float less that in double", worst, limit_at_dtype(drawing.params(), 1e-5));
}

// The share of a drawn tensor's numbers that occur more than once, signs of a few sizes apart: draws that are copies.
double share_of_copies(const Matrix<double>& tensor) {
  std::map<double, Index> counts;
  std::set<double> sizes;
  for (Index i = 0; i < tensor.size(); ++i) {
    const double x = tensor.data()[i];
    if (x == std::floor(x)) continue;
    ++counts[x];
    sizes.insert(std::abs(x));
  }
  if (sizes.size() <= 4) return 0;
  Index copies = 0, all = 0;
  for (const auto& [number, count] : counts) {
    all += count;
    copies += count > 1 ? count : 0;
  }
  return static_cast<double>(copies) / static_cast<double>(all);
}

// Whether another seed changes anything with some other value of a parameter: some draw only where a flag says so.
bool some_value_draws(const Subject& subject, const Probe& given, std::uint64_t seed) {
  for (const Parameter& p : subject.params.declared())
    for (const Params& other : other_values(subject.params, p)) {
      const Probe one = for_method(given, other, seed);
      if (!drawn_if_possible(subject, other, one.shape, seed)) continue;
      const Drawing drawing(subject, other, one.shape, seed);
      const Tensors first = shown_by(drawing, one, 1, 0, 0), of_seed = shown_by(drawing, one, 2, 0, 0);
      if (std::any_of(first.begin(), first.end(),
                      [&](const auto& shown) { return !same(first, of_seed, shown.first); }))
        return true;
    }
  return false;
}

}  // namespace

ClaimResults test_draws(const Subject& subject, const Probes& probes, std::uint64_t seed) {
  if (probes.empty()) return {};
  const Probe& one = probes.front();
  const Drawing drawing(subject, subject.params, one.shape, seed);
  const Tensors first = shown_by(drawing, one, 1, 0, 0), again = shown_by(drawing, one, 1, 0, 0),
                of_seed = shown_by(drawing, one, 2, 0, 0), of_head = shown_by(drawing, one, 1, 1, 0),
                of_replicate = shown_by(drawing, one, 1, 0, 1);
  // A parameter `share` says who shares a draw: layer (all heads), step (all heads and replicates).
  const std::string share = subject.params.has("share") ? subject.params.text("share") : "";
  const bool heads_share = share == "layer" || share == "step", replicates_share = share == "step";
  ClaimResults results;
  bool random = false;
  for (const auto& [name, tensor] : first) {
    const std::string what = name == "the output" ? name : "tensor " + name;
    results.push_back(equal_or_not(what + " of the same draw", same(first, again, name), true));
    const bool drawn = !same(first, of_seed, name);
    random = random || drawn;
    // Without a draw heads may still differ: per-head gives each its own method.
    if (drawn && !subject.fitted && !subject.built_in && name != "the output") {
      Result copies = compared("draws", "the share of copies in " + what, share_of_copies(tensor), 0.9);
      if (copies.outcome == Outcome::fail) copies.reason = "its numbers are copies of each other";
      results.push_back(std::move(copies));
    }
    if (drawn) results.push_back(equal_or_not(what + " of another head", same(first, of_head, name), heads_share));
    results.push_back(
        equal_or_not(what + " of another replicate", same(first, of_replicate, name), !drawn || replicates_share));
  }
  if (subject.asks_for_seed && !random && !some_value_draws(subject, one, seed))
    results.push_back({.claim = "draws",
                       .tested = "another seed, which its constructor asks for",
                       .outcome = Outcome::fail,
                       .reason = "no seed changes anything. Is it used? If the method draws nothing, ask for none"});
  if (subject.fitted) {
    const Drawing elsewhere(subject, subject.params, one.shape, seed + 1);
    const Tensors learnt = shown_by(elsewhere, one, 1, 0, 0);
    const bool same_all =
        std::all_of(first.begin(), first.end(), [&](const auto& shown) { return same(first, learnt, shown.first); });
    results.push_back(equal_or_not("what it learns from another head", same_all, false));
  }
  if (subject.law && subject.law(subject.params, one.shape.d).gaussian && first.contains("projection"))
    results.push_back(equal_or_not("projection vectors of another seed", same(first, of_seed, "projection"), false));
  // Fits in float may take another turn than in double, as k-means does; `precision` compares their outputs.
  if (random && !subject.fitted && first.size() > 1) results.push_back(compare_precisions(drawing));
  return results;
}

namespace {

// elsewhere: with another head to learn from.
template <class T>
Result made_again(const Drawing& drawing, const Drawing& elsewhere, const Probe& one) {
  const auto method = drawing.draw<T>(0);
  const Tensors state = method->state();
  const auto other = elsewhere.draw<T>(1, &state);  // without the state it would be another draw
  const HeadData<T> head = one.head.cast<T>();
  double different = differing_numbers(attended(*other, head, one.shape.mask), attended(*method, head, one.shape.mask));
  const Tensors given = other->state();
  for (const auto& [name, tensor] : given)
    different += state.contains(name) ? differing_numbers(tensor, state.at(name)) : 1;
  Result result = compared(
      "state", fmt::format("numbers that differ after the state was given back, {}, {}", one.name(), precision_name<T>),
      different, 0);
  if (result.outcome == Outcome::fail)
    result.reason = "a constructor has to use the tensors of Draw::state (in Python: its argument `state`)";
  return result;
}

}  // namespace

ClaimResults test_state(const Subject& subject, const Probes& probes, std::uint64_t seed) {
  ClaimResults results;
  for (const Probe& one : probes) {
    const Drawing drawing(subject, subject.params, one.shape, seed);
    if (drawing.draw<double>(0)->state().empty()) return {skipped("state", "its state is empty")};
    const Drawing elsewhere(subject, subject.params, one.shape, seed + 1);
    results.push_back(made_again<double>(drawing, elsewhere, one));
    results.push_back(made_again<float>(drawing, elsewhere, one));
  }
  return results;
}

}  // namespace attnbench
