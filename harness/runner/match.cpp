#include "harness/runner/match.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <mutex>
#include <set>

#include "harness/experiment/measured_cost.hpp"
#include "harness/linalg/bfloat16_products.hpp"

namespace attnbench {

namespace {

constexpr std::pair<const char*, Match::Cost> names[] = {
    {"flops", Match::Cost::flops}, {"bytes", Match::Cost::bytes},       {"features", Match::Cost::features},
    {"keys", Match::Cost::keys},   {"kv-bytes", Match::Cost::kv_bytes}, {"seconds", Match::Cost::seconds}};

std::string key_of(const Params& method, const Shape& shape) {
  return fmt::format("{} {} {} {} {} {} {} {} {}", method.spec(), shape.nq, shape.nk, shape.d, shape.dv,
                     shape.mask.causal, shape.mask.offset, shape.mask.keys, to_string(shape.precision));
}

double seconds_once(const Params& method, const Shape& shape) {
  static std::map<std::string, double> known;
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  const std::string key = key_of(method, shape);
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  return known[key] = *measured_cost("seconds", method, shape);
}

const Parameter* budget_of(const Params& method) {
  for (const Parameter& p : method.declared())
    if (p.budget) return &p;
  return nullptr;
}

// |log(cost / value)| of a budget, which the search minimises. Infinite if the method has no form with this budget, or
// no such cost.
double distance(const Params& method, const Shape& shape, const Match& match) {
  if (!find<MethodEntry>(method.name()).claims(method, shape).no_form.empty()) return INFINITY;
  const auto cost = cost_of(method, shape, match.cost);
  return cost && *cost > 0 ? std::abs(std::log(*cost / match.value)) : INFINITY;
}

}  // namespace

Match parse_match(const std::string& text) {
  const size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const auto known =
      std::find_if(std::begin(names), std::end(names), [&](const auto& one) { return name == one.first; });
  double value = 0;
  const char* end = text.data() + text.size();
  const bool number = equals != std::string::npos && std::from_chars(text.data() + equals + 1, end, value).ptr == end &&
                      std::isfinite(value) && value > 0;
  if (known == std::end(names) || !number)
    throw Misuse(fmt::format(
        "--match {}: expected flops=, bytes=, features=, keys=, kv-bytes= or seconds= and a number above 0, "
        "such as flops=1e8",
        text));
  return {known->second, value};
}

std::optional<double> cost_of(const Params& method, const Shape& shape, Match::Cost cost) {
  const auto& entry = find<MethodEntry>(method.name());
  switch (cost) {
    case Match::Cost::flops:
      return entry.cost(method, shape).flops;
    case Match::Cost::bytes:
      return entry.memory(method, shape);
    case Match::Cost::features:
      if (const auto rank = entry.claims(method, shape).rank_at_most) return static_cast<double>(*rank);
      return std::nullopt;
    case Match::Cost::keys:
      return measured_cost("keys", method, shape);
    case Match::Cost::kv_bytes:
      return measured_cost("kv-bytes", method, shape);
    case Match::Cost::seconds:
      if (shape.precision == Precision::bf16 && !bfloat16_products_are_fast)
        throw Misuse(
            "--match seconds at --precision bf16: this processor (or build) has no AVX-512 BF16, so that the emulation "
            "would be timed; expected another cost, such as --match flops=1e8");
      return seconds_once(method, shape);
  }
  return std::nullopt;
}

// Matches each of the specs in brackets to the same share of the value. Chooses the share that brings the whole
// nearest.
static Params matched_parts(const Params& method, const std::string& parts, const Shape& shape, const Match& match) {
  Params best = method;
  double least = INFINITY;
  for (double share = 1; share > 1e-2; share *= 0.8) {
    std::string specs;
    for (const Params& inner : method.all_nested(parts))
      specs += (specs.empty() ? "[" : ",[") + matched(inner, shape, {match.cost, share * match.value}).spec() + "]";
    const Params with_share = method.with(parts, specs);
    if (const double d = distance(with_share, shape, match); d < least) {
      least = d;
      best = with_share;
    }
  }
  return best;
}

static Params searched(const Params& method, const Shape& shape, const Match& match) {
  const Parameter* budget = budget_of(method);
  if (!budget) {
    const auto& declared = method.declared();
    const bool nests = !declared.empty() && declared.front().kind == Parameter::Kind::specs;
    return nests ? matched_parts(method, declared.front().name, shape, match) : method;
  }
  const auto with = [&](Index value) { return method.with(budget->name, std::to_string(value)); };
  // Try every small value, then grow by 5 %: a cost need not increase with the budget (routing: 4 n c d + 2 n^2 / c),
  // so we try the whole range. Measured costs: grow by a factor of 2, then refine, taking them as proportional to the
  // budget.
  const Index last = static_cast<Index>(std::min(budget->maximum, 16.0 * static_cast<double>(shape.nk)));
  const bool measured =
      match.cost == Match::Cost::seconds || match.cost == Match::Cost::keys || match.cost == Match::Cost::kv_bytes;
  const double near = match.cost == Match::Cost::seconds ? 0.05 : 0.005;
  Index best = method.integer(budget->name);
  double least = INFINITY;
  const auto look = [&](Index value) {
    const double d = distance(with(value), shape, match);
    if (d < least) {
      least = d;
      best = value;
    }
    return d;
  };
  const auto first = static_cast<Index>(std::max(1.0, budget->minimum));
  for (Index value = first; value <= last;) {
    const bool beyond = look(value) > least && measured && least < INFINITY;
    if (beyond) break;  // larger budgets would only be slower
    value = measured ? 2 * value : std::max(value + 1, static_cast<Index>(1.05 * static_cast<double>(value)));
  }
  const Index coarse = best, step = std::max<Index>(1, coarse / 640);
  if (!measured && least > 0 && least < INFINITY)
    for (Index value = coarse - 32 * step; value <= coarse + 32 * step; value += step)
      if (value >= first && value <= last) look(value);
  for (int refinement = 0; measured && refinement < 3 && least > near && least < INFINITY; ++refinement) {
    const double cost = *cost_of(with(best), shape, match.cost);
    const double guess = static_cast<double>(best) * match.value / cost;
    const Index next = std::clamp(static_cast<Index>(std::lround(guess)), first, last);
    if (next == best) break;
    look(next);
  }
  return with(best);
}

// Cached: a grid asks for the same method and shape once per input and replicate, and a search tries hundreds of
// budgets.
Params matched(const Params& method, const Shape& shape, const Match& match) {
  static std::map<std::string, Params> known;
  static std::mutex mutex;
  const std::string key = fmt::format("{} {} {}", key_of(method, shape), static_cast<int>(match.cost), match.value);
  {
    const std::scoped_lock lock(mutex);
    if (const auto found = known.find(key); found != known.end()) return found->second;
  }
  Params found = searched(method, shape, match);
  const std::scoped_lock lock(mutex);
  return known.emplace(key, std::move(found)).first->second;
}

std::vector<std::string> budget_names() {
  std::set<std::string> budgets;
  for (const auto& name : catalogue("methods").names()) {
    const Params method("methods", name);
    for (const Parameter& p : method.declared())
      if (p.budget) budgets.insert(p.name);
  }
  return {budgets.begin(), budgets.end()};
}

}  // namespace attnbench
