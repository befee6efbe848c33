#include "harness/runner/match.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <mutex>

#include "harness/core/needs.hpp"
#include "harness/core/scaling.hpp"
#include "harness/linalg/bfloat16_products.hpp"

namespace attnbench {

namespace {

constexpr std::pair<const char*, Match::Cost> names[] = {
    {"flops", Match::Cost::flops}, {"bytes", Match::Cost::bytes},       {"features", Match::Cost::features},
    {"keys", Match::Cost::keys},   {"kv-bytes", Match::Cost::kv_bytes}, {"seconds", Match::Cost::seconds}};

HeadData<double> gaussian_head(const Params& method, const Shape& shape) {
  const auto normal = [&](const char* what, Index rows, Index columns) {
    auto generator = Streams(1).stream("match", what, rows, columns);
    return Matrix<double>(standard_normal(generator, rows, columns) * edge_scale(shape.d));
  };
  return {normal("Q", shape.nq, shape.d), normal("K", shape.nk, shape.d), normal("V", shape.nk, shape.dv),
          drawn_extras(method, shape, 1)};
}

template <class T>
std::unique_ptr<Approximation<T>> fitted(const Params& method, const Shape& shape, const HeadData<double>& to) {
  const Head<double> learnt = to.view();
  return make_approximation<T>({.shape = shape, .params = method, .streams = Streams(1), .calibration = &learnt});
}

template <class T>
double seconds_of_call(const Params& method, Shape shape) {
  const HeadData<double> calibration = gaussian_head(method, shape);
  const auto drawn = fitted<T>(method, shape, calibration);
  const HeadData<T> head = calibration.template cast<T>();
  Matrix<T> out(shape.nq, shape.dv);
  double least = INFINITY;
  for (int call = 0; call < 4; ++call) {  // the first call warms up
    Context context(1, Rounding::none, operands_of(shape.precision));
    const auto begin = std::chrono::steady_clock::now();
    drawn->attend(head.view(), shape.mask, context, out);
    least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return least;
}

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
  return known[key] =
             in_float(shape.precision) ? seconds_of_call<float>(method, shape) : seconds_of_call<double>(method, shape);
}

// The mean over rows of the number of keys that they read: of all rows up to 64, else of 8 x 8 neighbours. nullopt if
// the method declares no pattern.
std::optional<double> keys_of_row(const Params& method, const Shape& shape) {
  const HeadData<double> head = gaussian_head(method, shape);
  const auto drawn = fitted<double>(method, shape, head);
  if (!drawn->pattern()) return std::nullopt;
  constexpr Index neighbours = 8, groups = 8;
  const bool few = shape.nq <= neighbours * groups;
  const Index count = few ? shape.nq : neighbours;
  Context context;
  double keys = 0, rows = 0;
  for (Index group = 0; group < (few ? 1 : groups); ++group) {
    std::vector<std::vector<Index>> of_rows(static_cast<size_t>(count));
    const Index first = few ? 0 : group * (shape.nq - count) / (groups - 1);
    drawn->pattern()->keys_of_rows(head.view(), shape.mask, first, context, of_rows);
    for (const auto& of_row : of_rows) keys += static_cast<double>(of_row.size());
    rows += static_cast<double>(count);
  }
  return keys / rows;
}

// Bytes that a decoder keeps after all tokens of a gaussian head. nullopt if the method has no decoder.
template <class T>
std::optional<double> bytes_after(const Params& method, const Shape& shape) {
  const HeadData<double> head = gaussian_head(method, shape);
  const auto drawn = fitted<T>(method, shape, head);
  const auto decoder = drawn->decoder(shape);
  if (!decoder) return std::nullopt;
  Context context;
  decoder->prefill(head.template cast<T>().view(), context);
  return static_cast<double>(decoder->bytes());
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
      return keys_of_row(method, shape);
    case Match::Cost::kv_bytes:
      return in_float(shape.precision) ? bytes_after<float>(method, shape) : bytes_after<double>(method, shape);
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

}  // namespace attnbench
