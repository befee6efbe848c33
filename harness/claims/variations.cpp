#include "harness/claims/variations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "harness/core/needs.hpp"
#include "harness/core/torch_place.hpp"

namespace attnbench {

namespace {

// Numbers to try, the most telling first, as texts of that kind.
std::vector<std::string> numbers_to_try(const Params& spec, const Parameter& p) {
  const bool whole = p.kind == Parameter::Kind::integer;
  const bool word = !p.word.empty() && spec.text(p.name) == p.word;
  const double value = word ? 8 : whole ? static_cast<double>(spec.integer(p.name)) : spec.real(p.name);
  std::vector<double> numbers{8, value / 2, 2 * value, 4 * value, p.maximum, 2,     1,
                              3, 0,         0.5,       p.minimum, value + 1, -value};
  if (whole)
    for (double& number : numbers) number = std::floor(number);
  std::vector<std::string> texts;
  if (!p.word.empty() && !word) texts.push_back(p.word);
  for (const double number : numbers) {
    if (!(number >= p.minimum && number <= p.maximum) || std::abs(number) > 1e6) continue;
    if (!word && number == value) continue;
    texts.push_back(whole ? fmt::format("{:.0f}", number) : fmt::format("{}", number));
  }
  return texts;
}

std::vector<std::string> values_to_try(const Params& spec, const Parameter& p) {
  if (is_torch_place(spec, p.name)) return {};
  switch (p.kind) {
    case Parameter::Kind::integer:
    case Parameter::Kind::real:
      return numbers_to_try(spec, p);
    case Parameter::Kind::flag:
      return {spec.flag(p.name) ? "false" : "true"};
    case Parameter::Kind::choice:
      return p.choices;
    case Parameter::Kind::entry:
      return catalogue(p.catalogue).names();
    case Parameter::Kind::specs:
      return {"[uniform]", "[local:window=3]"};
    case Parameter::Kind::text:
      break;
  }
  return {};
}

}  // namespace

std::vector<Params> other_values(const Params& spec, const Parameter& parameter) {
  std::vector<Params> all;
  for (const std::string& value : values_to_try(spec, parameter)) {
    try {
      const Params other = parameter.kind == Parameter::Kind::entry ? spec.with_entry(parameter.name, value)
                                                                    : spec.with(parameter.name, value);
      find<MethodEntry>(other.name()).check(other);
      const auto same = [&](const Params& one) { return one.spec() == other.spec(); };
      if (!same(spec) && std::none_of(all.begin(), all.end(), same)) all.push_back(other);
    } catch (const Misuse&) {  // contradicts the others
    }
  }
  return all;
}

std::string difference_of(const Params& changed, const Params& spec) {
  std::string text;
  for (const auto& [name, value] : changed.values()) {
    const bool there = spec.has(name);
    const auto& before = spec.values();
    const bool same = there && std::any_of(before.begin(), before.end(), [&, n = name, v = value](const auto& one) {
                        return one.first == n && one.second == v;
                      });
    if (!same) text += (text.empty() ? "" : ",") + name + "=" + value;
  }
  return text;
}

std::vector<Params> with_small_budgets(const Params& spec) {
  std::vector<Params> all;
  for (const Parameter& p : spec.declared()) {
    if (!p.budget) continue;
    for (const double few : {8.0, 1.0}) {
      const double value = std::max(few, p.minimum);
      if (static_cast<double>(spec.integer(p.name)) > value && value <= p.maximum)
        all.push_back(spec.with(p.name, fmt::format("{:.0f}", value)));
    }
  }
  return all;
}

std::vector<std::string> cases_of(const std::string& exact_when) {
  std::vector<std::string> cases;
  for (std::istringstream rest(exact_when); rest.good();) {
    std::string one;
    std::getline(rest >> std::ws, one, ';');
    if (!one.empty()) cases.push_back(one);
  }
  return cases;
}

Probe for_method(const Probe& one, const Params& params, std::uint64_t seed) {
  Probe other = one;
  other.head.extra = drawn_extras(params, one.shape, seed);
  return other;
}

std::unique_ptr<Approximation<double>> drawn_if_possible(const Subject& subject, const Params& params,
                                                         const Shape& shape, std::uint64_t seed) {
  try {
    if (!subject.claims(params, shape).no_form.empty()) return nullptr;
    return Drawing(subject, params, shape, seed).draw<double>(0);
  } catch (const Misuse&) {
  } catch (const Skip&) {
  }
  return nullptr;
}

}  // namespace attnbench
