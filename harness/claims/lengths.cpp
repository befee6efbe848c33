// The other claims use heads of up to 130 tokens of an even width, and do not see what begins behind them: a tile's
// number in 8 bits, a position in 16, a residual of 128 tokens, sums of gates that lose their digits, a last column.
// Long heads get few queries, so that a plain transcription can follow, unless the method takes heads with a query for
// each key alone.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "harness/claims/precision.hpp"
#include "harness/claims/structural.hpp"
#include "harness/claims/variations.hpp"
#include "harness/core/torch_place.hpp"
#include "harness/machine/peak_memory.hpp"

namespace attnbench {

namespace {

constexpr const char* claim = "lengths";
constexpr Index d = 8, dv = 5;
constexpr double most_units = 4, most_units_of_features = 12;  // features round inside, which no change of inputs shows
// Sanitizers look at memory, five times slower.
constexpr Index long_head = sanitized ? 300 : 1100, longest_head = sanitized ? 600 : 5000;
constexpr Index large_budget = 2000;
constexpr Index beyond_16_bits = 40'000;  // for methods that one query costs little
constexpr double little = 2e8;            // FLOPs, and bytes
constexpr double affordable = 1e9;        // bytes of one call
constexpr double alike = 1e-9;            // rows that are computed otherwise

// Queries [first, first + count) of a head with one query a key, at their places.
Probe part_of(const Probe& whole, Index first, Index count, bool causal) {
  const HeadPart<double> owner(whole.head.view(), first, count, 0, whole.shape.nk);
  const Head<double> part = owner.view();
  Shape shape = whole.shape;
  shape.nq = count;
  shape.mask = {.causal = causal, .offset = first};
  return {shape, {part.Q, part.K, part.V, *part.extra}};
}

// The first tokens of a head.
Probe tokens_until(const Probe& whole, Index count) {
  const auto owner = HeadPart<double>::tokens(whole.head.view(), 0, count);
  const Head<double> part = owner.view();
  Shape shape = whole.shape;
  shape.nq = shape.nk = count;
  return {shape, {part.Q, part.K, part.V, *part.extra}};
}

// The last query of a head without a mask: the last row of a causal head, where rows are independent.
Probe last_query(const Subject& subject, Index n, std::uint64_t seed) {
  return part_of(gaussian_probe(subject.params, {.nq = n, .nk = n, .d = d, .dv = dv}, seed), n - 1, 1, false);
}

// Whether one call at that length takes few FLOPs and bytes, those of the state included: some methods draw a matrix of
// n x n numbers. Their state at two smaller lengths tells how it grows.
bool costs_little(const Subject& subject, const Shape& shape, std::uint64_t seed) {
  if (!subject.claims(subject.params, shape).no_form.empty() || subject.cost(subject.params, shape).flops > little ||
      subject.memory(subject.params, shape) > little)
    return false;
  const auto numbers_at = [&](Index n) -> std::optional<double> {
    Shape smaller = shape;
    smaller.nk = n;
    const auto method = drawn_if_possible(subject, subject.params, smaller, seed);
    if (!method) return std::nullopt;
    double numbers = 1;
    for (const auto& [name, tensor] : method->state()) numbers += static_cast<double>(tensor.size());
    return numbers;
  };
  const auto half = numbers_at(long_head / 2), whole = numbers_at(long_head);
  if (!half || !whole) return false;
  const double doublings = std::log2(static_cast<double>(shape.nk) / static_cast<double>(long_head));
  return 8 * *whole * std::pow(*whole / *half, doublings) <= little;
}

// A single token, a single query, three queries at the start, in the middle and at the end of long heads, one query of
// more keys than 16 bits count, and a head whose width is odd. A class in Python is told no place: one query of a head
// is enough, as a transcription in plain loops may take a sum for each key.
Probes long_probes(const Subject& subject, std::uint64_t seed) {
  Probes all;
  for (const Index n : {Index{1}, Index{130}, long_head, longest_head}) {
    const Probe whole = gaussian_probe(subject.params, {.nq = n, .nk = n, .d = d, .dv = dv}, seed);
    const Index count = n <= 130 || subject.interpreted ? 1 : 3;
    std::set<Index> places{n - count};
    if (!subject.interpreted) places.insert({0, n / 2 - count / 2});
    for (const bool causal : {false, true})
      for (const Index first : places) all.push_back(part_of(whole, first, count, causal));
  }
  if (const Probe last = last_query(subject, beyond_16_bits, seed);
      !sanitized && costs_little(subject, last.shape, seed))
    all.push_back(last);
  for (const bool causal : {false, true})
    all.push_back(gaussian_probe(subject.params,
                                 {.nq = 90, .nk = 90, .d = d - 1, .dv = dv - 1, .mask = {.causal = causal}}, seed));
  return all;
}

// A head with a query for each key.
Probe whole_probe(const Subject& subject, Index n, bool causal, std::uint64_t seed) {
  return gaussian_probe(subject.params, {.nq = n, .nk = n, .d = d, .dv = dv, .mask = {.causal = causal}}, seed);
}

// The tests of one spec on one head.
class OnHead {
 public:
  OnHead(const Subject& subject, const Params& params, const Probe& one, std::uint64_t seed)
      : subject_(subject),
        one_(with_all_bits(one, seed)),
        held_by_float_(one),
        seed_(seed),
        drawing_(subject, params, one.shape, seed) {}

  // Nothing where the method refuses the shape or the parameters, as below.
  void test_formula(const std::string& where, ClaimResults& results) const {
    if (!subject_.transcription) return;
    const auto method = drawn_if_possible(subject_, drawing_.params(), one_.shape, seed_);
    if (!method) return;
    const Matrix<double> want = drawing_.transcribed(subject_.transcription, *method, one_);
    if (want.size() == 0) return;  // not for this mask
    results.push_back(compare_rows(
        claim, "attend against the transcription, " + where, attended(*method, one_.head, one_.shape.mask), want,
        row_conditions(*method, one_, non_negative(), seed_), size_of(one_.head.V), double_tolerance));
  }

  void test_float(const std::string& where, ClaimResults& results) const {
    if (spacing_of(subject_.params) > std::numeric_limits<float>::epsilon()) return;
    if (drawn_if_possible(subject_, drawing_.params(), one_.shape, seed_)) results.push_back(in_float(where));
  }

  void test_rows(const std::string& where, ClaimResults& results) const {
    test_formula(where, results);
    test_float(where, results);
  }

  // Decoded rows at the end of a causal head with a query for each key.
  void test_steps(const std::string& where, ClaimResults& results) const {
    const auto method = drawn_if_possible(subject_, drawing_.params(), one_.shape, seed_);
    if (!method || !method->decoder(one_.shape)) return;
    results.push_back(last_steps(*method, attended(*method, one_.head, one_.shape.mask).bottomRows(steps), where));
  }

  // The same where the whole of attend would cost too much: nothing unless the method takes the last queries alone.
  void test_steps_by_last_rows(const std::string& where, ClaimResults& results) const {
    const auto method = drawn_if_possible(subject_, drawing_.params(), one_.shape, seed_);
    if (!method || !method->decoder(one_.shape)) return;
    if (const auto last = last_rows()) results.push_back(last_steps(*method, *last, where));
  }

  // The last step against the last query without a mask, which a class in Python takes as well.
  void test_last_step(const std::string& where, ClaimResults& results) const {
    const auto method = drawn_if_possible(subject_, drawing_.params(), one_.shape, seed_);
    if (!method || !method->decoder(one_.shape)) return;
    const auto last = last_row();
    if (!last) return;
    const Index n = one_.shape.nk;
    results.push_back(compare_rows(claim, fmt::format("the step after a prompt of {}, {}", n - 1, where),
                                   decoded(*method, one_.shape, one_.head, n - 1), *last, {1.0}, size_of(one_.head.V),
                                   largest_condition * double_tolerance));
  }

  // How far rows of causal attend are from those of their queries alone, over the tokens before them and without a
  // mask.
  std::optional<double> apart_from_alone() const {
    const auto method = drawn_if_possible(subject_, drawing_.params(), one_.shape, seed_);
    if (!method) return std::nullopt;
    const Matrix<double> whole = attended(*method, one_.head, one_.shape.mask);
    double most = 0;
    for (const Index row : {one_.shape.nq / 2, one_.shape.nq - 1}) {
      const Probe alone = part_of(tokens_until(one_, row + 1), row, 1, false);
      const auto of_alone = drawn_if_possible(subject_, drawing_.params(), alone.shape, seed_);
      if (!of_alone) return std::nullopt;
      most = worse(most, (whole.row(row) - attended(*of_alone, alone.head, alone.shape.mask)).cwiseAbs().maxCoeff());
    }
    return most;
  }

  // Whether the last row of causal attend is that of its query without a mask.
  bool last_row_is_alone() const {
    const auto method = drawn_if_possible(subject_, drawing_.params(), one_.shape, seed_);
    const auto last = last_row();
    return method && last &&
           (attended(*method, one_.head, one_.shape.mask).bottomRows(1) - *last).cwiseAbs().maxCoeff() < alike;
  }

  // Whether its decoder takes a prompt in at once.
  bool takes_prompts() const {
    const auto method = drawn_if_possible(subject_, drawing_.params(), one_.shape, seed_);
    const auto decoder = method ? method->decoder(one_.shape) : nullptr;
    return decoder && decoder->takes_prompts();
  }

  // Whether the last rows of attend are those that it gives for their queries alone.
  bool rows_are_independent() const {
    const auto method = drawn_if_possible(subject_, drawing_.params(), one_.shape, seed_);
    const auto last = last_rows();
    return method && last &&
           (attended(*method, one_.head, one_.shape.mask).bottomRows(steps) - *last).cwiseAbs().maxCoeff() < alike;
  }

 private:
  std::optional<Matrix<double>> last_rows() const {
    const Probe last = part_of(one_, one_.shape.nq - steps, steps, true);
    const auto method = drawn_if_possible(subject_, drawing_.params(), last.shape, seed_);
    if (!method) return std::nullopt;
    return attended(*method, last.head, last.shape.mask);
  }

  std::optional<Matrix<double>> last_row() const {
    const Probe last = part_of(one_, one_.shape.nq - 1, 1, false);
    const auto method = drawn_if_possible(subject_, drawing_.params(), last.shape, seed_);
    if (!method) return std::nullopt;
    return attended(*method, last.head, last.shape.mask);
  }

  bool non_negative() const { return subject_.claims(drawing_.params(), one_.shape).non_negative; }

  // In units of what rounding all inputs to float and adding up the keys in float does.
  Result in_float(const std::string& where) const {
    const auto single = drawing_.draw<float>(0);
    const Tensors state = single->state();
    const auto exact = drawing_.draw<double>(0, state.empty() ? nullptr : &state);
    const Matrix<double> got =
        attended(*single, held_by_float_.head.cast<float>(), held_by_float_.shape.mask).cast<double>();
    return compare_with_double(
        claim, "float against double, " + where, got, *exact, held_by_float_,
        rounding_conditions(*exact, held_by_float_, state),
        (exact->kernel() ? most_units_of_features : most_units) * std::numeric_limits<float>::epsilon());
  }

  // The last rows, after a prompt of all others, against `want`.
  Result last_steps(const Approximation<double>& method, const Matrix<double>& want, const std::string& where) const {
    const Index n = one_.shape.nk;
    const Matrix<double> out = decoded(method, one_.shape, one_.head, n - steps);
    const Probe last = part_of(one_, n - steps, steps, true);
    const auto of_last = drawn_if_possible(subject_, drawing_.params(), last.shape, seed_);
    const auto condition = of_last ? row_conditions(*of_last, last, non_negative(), seed_)
                                   : row_conditions(method, one_, non_negative(), seed_);
    return compare_rows(claim, fmt::format("{} steps after a prompt of {}, {}", steps, n - steps, where), out, want,
                        {condition.end() - steps, condition.end()}, size_of(one_.head.V), double_tolerance);
  }

  static constexpr Index steps = 3;
  const Subject& subject_;
  Probe one_;
  Probe held_by_float_;
  std::uint64_t seed_;
  Drawing drawing_;
};

// Whether the method takes this head with a query for each key, and no part of it.
bool only_square(const Subject& subject, const Probe& one) {
  const Shape few = part_of(one, one.shape.nq - 3, 3, one.shape.mask.causal).shape;
  return !subject.claims(subject.params, few).no_form.empty();
}

bool is_least(const Params& params, const Parameter& p) {
  if (!p.word.empty() && params.text(p.name) == p.word) return false;
  return p.kind == Parameter::Kind::integer ? static_cast<double>(params.integer(p.name)) == p.minimum
         : p.kind == Parameter::Kind::real  ? params.real(p.name) == p.minimum
                                            : false;
}

// Whether a prompt beyond 16 bits fits into memory if its bytes grow with the square of its length.
bool takes_long_prompts(const Subject& subject, std::uint64_t seed) {
  constexpr Index some = 2200;
  const Probe one = whole_probe(subject, some, true, seed);
  const auto method = drawn_if_possible(subject, subject.params, one.shape, seed);
  if (!method) return false;
  const auto decoder = method->decoder(one.shape);
  Context context;
  const auto prompt = HeadPart<double>::tokens(one.head.view(), 0, some);
  const auto peak = peak_bytes([&] { decoder->prefill(prompt.view(), context); });
  const double times = static_cast<double>(beyond_16_bits) / static_cast<double>(some);
  return peak && *peak * times * times <= 2 * affordable;
}

// For a method whose last row of 1100 causal tokens is that of its query alone, without a mask. Compares rows of 5000
// causal tokens with their queries alone, which a class in Python takes (it takes no part of a causal head), and the
// decoder's steps after 5000 and 40,000 tokens.
void test_against_single_queries(const Subject& subject, const OnHead& on_causal, std::uint64_t seed,
                                 ClaimResults& results) {
  if (subject.interpreted) {
    const Probe longest = whole_probe(subject, longest_head, true, seed);
    const OnHead on(subject, subject.params, longest, seed);
    on.test_last_step(longest.name(), results);
    if (subject.memory(subject.params, longest.shape) <= affordable && on_causal.apart_from_alone().value_or(1) < alike)
      if (const auto apart = on.apart_from_alone())
        results.push_back(
            compared(claim, "rows against their queries alone, without a mask, " + longest.name(), *apart, alike));
  }
  if (sanitized || !on_causal.takes_prompts() ||
      !costs_little(subject, last_query(subject, beyond_16_bits, seed).shape, seed) ||
      !takes_long_prompts(subject, seed))
    return;
  const Probe whole = whole_probe(subject, beyond_16_bits, true, seed);
  OnHead(subject, subject.params, whole, seed).test_last_step(whole.name(), results);
}

// Budgets beyond a thousand, for one query of a head that is longer: plain loops in Python would take a minute.
void test_large_budgets(const Subject& subject, std::uint64_t seed, ClaimResults& results) {
  for (const Parameter& p : subject.params.declared()) {
    if (!p.budget || p.published || subject.params.integer(p.name) >= large_budget || p.maximum < large_budget)
      continue;
    try {
      const Params larger = subject.params.with(p.name, std::to_string(large_budget));
      find<MethodEntry>(larger.name()).check(larger);
      const Probe last = for_method(last_query(subject, longest_head, seed), larger, seed);
      OnHead(subject, larger, last, seed)
          .test_formula(fmt::format("{}, {}", difference_of(larger, subject.params), last.name()), results);
    } catch (const Misuse&) {  // contradicts the others
    }
  }
}

}  // namespace

ClaimResults test_lengths(const Subject& subject, const Probes& probes, std::uint64_t seed) {
  constexpr size_t most_values = 5;
  constexpr size_t near_values = 3;  // far more of something may round more, as iterations do
  ClaimResults results;
  for (const Probe& one : long_probes(subject, seed))
    OnHead(subject, subject.params, one, seed).test_rows(one.name(), results);
  const Probe causal = whole_probe(subject, long_head, true, seed);
  const OnHead on_causal(subject, subject.params, causal, seed);
  on_causal.test_steps(causal.name(), results);
  // Sums over tokens that lose digits show in some rows. A class in Python takes no part of a causal head.
  if (subject.interpreted) {
    on_causal.test_float(causal.name(), results);
  } else {
    constexpr Index rows = 64;
    const Probe last = part_of(whole_probe(subject, longest_head, true, seed), longest_head - rows, rows, true);
    OnHead(subject, subject.params, last, seed).test_float(last.name(), results);
  }
  if (on_causal.rows_are_independent()) {
    const Probe longest = whole_probe(subject, longest_head, true, seed);
    OnHead(subject, subject.params, longest, seed).test_steps_by_last_rows(longest.name(), results);
  }
  if (on_causal.last_row_is_alone()) test_against_single_queries(subject, on_causal, seed, results);
  if (!subject.interpreted) test_large_budgets(subject, seed, results);
  const Index proved = std::min<Index>(subject.interpreted ? 300 : 600, long_head);
  for (const bool masked : {false, true})
    if (const Probe one = whole_probe(subject, proved, masked, seed); only_square(subject, one)) {
      OnHead(subject, subject.params, one, seed).test_formula(one.name(), results);
      const Probe longer = whole_probe(subject, long_head, masked, seed);
      if (!masked || !subject.interpreted)
        OnHead(subject, subject.params, longer, seed).test_float(longer.name(), results);
    }
  // Thresholds of other values lie inside the short heads.
  const auto whole =
      std::find_if(probes.rbegin(), probes.rend(), [](const Probe& one) { return one.shape.nq == one.shape.nk; });
  if (whole == probes.rend()) return results;
  for (const Parameter& p : subject.params.declared()) {
    if (p.published) continue;  // claims need not hold for its other values
    std::vector<Params> values = other_values(subject.params, p);
    if (values.size() > most_values) {
      // The least is where branches end.
      const auto least = std::find_if(values.begin() + most_values, values.end(),
                                      [&](const Params& other) { return is_least(other, p); });
      if (least != values.end()) std::iter_swap(values.begin() + most_values - 1, least);
      values.erase(values.begin() + most_values, values.end());
    }
    for (size_t v = 0; v < values.size(); ++v) {
      const Params& other = values[v];
      const Probe one = for_method(*whole, other, seed);
      const std::string where = fmt::format("{}, {}", difference_of(other, subject.params), one.name());
      const OnHead on(subject, other, one, seed);
      on.test_formula(where, results);
      if (v < near_values) on.test_float(where, results);
      if (one.shape.mask == Mask{.causal = true}) on.test_steps(where, results);
    }
  }
  return results;
}

}  // namespace attnbench
