#include "harness/core/parameters.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>

#include "harness/core/registry.hpp"

namespace attnbench {

Parameter Parameter::integer(std::string name, long value, std::string help, double minimum, double maximum) {
  return {Kind::integer, std::move(name), std::to_string(value), std::move(help), minimum, maximum};
}
Parameter Parameter::integer_or(std::string name, std::string word, std::string help, double minimum, double maximum) {
  Parameter p{Kind::integer, std::move(name), word, std::move(help), minimum, maximum};
  p.word = std::move(word);
  return p;
}
Parameter Parameter::real(std::string name, double value, std::string help, double minimum, double maximum) {
  return {Kind::real, std::move(name), fmt::format("{}", value), std::move(help), minimum, maximum};
}
Parameter Parameter::real_or(std::string name, std::string word, std::string help, double minimum, double bound) {
  Parameter p{Kind::real, std::move(name), word, std::move(help), minimum, std::nextafter(bound, minimum)};
  p.word = std::move(word);
  return p;
}
Parameter Parameter::flag(std::string name, bool value, std::string help) {
  return {Kind::flag, std::move(name), value ? "true" : "false", std::move(help)};
}
Parameter Parameter::choice(std::string name, std::string value, std::string help, std::vector<std::string> choices) {
  Parameter p{Kind::choice, std::move(name), std::move(value), std::move(help)};
  p.choices = std::move(choices);
  return p;
}
Parameter Parameter::text(std::string name, std::string value, std::string help) {
  return {Kind::text, std::move(name), std::move(value), std::move(help)};
}
Parameter Parameter::entry(std::string name, std::string value, std::string help, std::string catalogue) {
  Parameter p{Kind::entry, std::move(name), std::move(value), std::move(help)};
  p.catalogue = std::move(catalogue);
  return p;
}

Parameter Parameter::specs(std::string name, std::string value, std::string help, std::string catalogue) {
  Parameter p{Kind::specs, std::move(name), std::move(value), std::move(help)};
  p.catalogue = std::move(catalogue);
  return p;
}

Parameter Parameter::as_budget() && {
  budget = true;
  return std::move(*this);
}

Parameter Parameter::as_numerics() && {
  numerics = true;
  return std::move(*this);
}

Parameter Parameter::as_published() && {
  published = true;
  return std::move(*this);
}

namespace {

template <class Number>
bool parse_number(const std::string& text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

bool brackets_balance(const std::string& text) {
  int depth = 0;
  for (const char c : text) {
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (depth < 0) return false;
  }
  return depth == 0;
}

// Splits "[a],[b]" into a, b.
std::vector<std::string> separated(const std::string& owner, const Parameter& p, const std::string& value) {
  std::vector<std::string> parts;
  for (auto& [key, part] : parse_spec(owner + ":" + value).arguments) {
    if (!key.empty())
      throw Misuse(fmt::format("{}: {}={} is among its {}; put brackets around each of them: [{}={}]", owner, key, part,
                               p.name, key, part));
    parts.push_back(std::move(part));
  }
  return parts;
}

// Joins a, b into "[a],[b]".
std::string listed(const std::vector<std::string>& parts) { return fmt::format("[{}]", fmt::join(parts, "],[")); }

// The value in canonical spelling ("1e2" becomes "100"). Throws Misuse if it does not fit the declaration.
std::string checked(const std::string& owner, const Parameter& p, const std::string& value) {
  const auto refuse = [&](const std::string& expected) {
    throw Misuse(fmt::format("{}: {}={} is not allowed; expected {}", owner, p.name, value, expected));
  };
  switch (p.kind) {
    case Parameter::Kind::integer: {
      if (!p.word.empty() && value == p.word) return value;
      long long number = 0;
      if (!parse_number(value, number) || static_cast<double>(number) < p.minimum ||
          static_cast<double>(number) > p.maximum)
        refuse(fmt::format("{}an integer from {:.0f} to {:.0f}", p.word.empty() ? "" : p.word + " or ", p.minimum,
                           p.maximum));
      return std::to_string(number);
    }
    case Parameter::Kind::real: {
      if (!p.word.empty() && value == p.word) return value;
      double number = 0;
      if (!parse_number(value, number) || !std::isfinite(number) || number < p.minimum || number > p.maximum)
        refuse(p.word.empty() ? fmt::format("a number from {} to {}", p.minimum, p.maximum)
                              : fmt::format("{} or a number from {} to below {:.6g}", p.word, p.minimum, p.maximum));
      return fmt::format("{}", number + 0.0);  // spells -0 as 0
    }
    case Parameter::Kind::flag:
      if (value != "true" && value != "false") refuse("true or false");
      return value;
    case Parameter::Kind::choice:
      if (std::find(p.choices.begin(), p.choices.end(), value) == p.choices.end())
        refuse(fmt::format("one of {}", fmt::join(p.choices, ", ")));
      return value;
    case Parameter::Kind::text:
      if (!brackets_balance(value)) refuse("text whose brackets balance, so that a spec can hold it");
      return value;
    case Parameter::Kind::entry: {
      if (!catalogue(p.catalogue).has(value))
        throw Misuse(fmt::format("{}: unknown {} in {}={}{}", owner, catalogue(p.catalogue).kind(), p.name, value,
                                 nearest_names(value, catalogue(p.catalogue).names())));
      return catalogue(p.catalogue).canonical(value);
    }
    case Parameter::Kind::specs: {
      auto parts = separated(owner, p, value);
      for (auto& part : parts) part = Params(p.catalogue, part).spec();
      return listed(parts);
    }
  }
  return value;
}

}  // namespace

Params::Params(const std::string& plural, const Spec& spec) {
  Spec keyed = spec;
  keyed.name = catalogue(plural).canonical(spec.name);  // throws for an unknown name
  Content content{.plural = plural, .name = keyed.name, .declared = {}, .values = {}};
  const auto& own = catalogue(plural).parameters(keyed.name);
  if (!own.empty() && own.front().kind == Parameter::Kind::specs) {
    std::vector<std::string> parts;
    for (const auto& [key, value] : keyed.arguments)
      if (key.empty()) parts.push_back(value);
    std::erase_if(keyed.arguments, [](const auto& argument) { return argument.first.empty(); });
    if (!parts.empty()) keyed.arguments.emplace_back(own.front().name, listed(parts));
  }
  for (auto& [key, value] : keyed.arguments) {
    if (!key.empty()) continue;
    if (own.empty())
      throw Misuse(fmt::format("{}: takes no parameters, but '{}' was given; remove it", spec.name, value));
    key = own.front().name;
  }
  for (size_t i = 0; i < keyed.arguments.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (keyed.arguments[i].first == keyed.arguments[j].first)
        throw Misuse(fmt::format("{}: parameter '{}' is given twice; keep one", spec.name, keyed.arguments[i].first));
  std::vector<Parameter> declared;
  declare(content, declared, plural, keyed.name, keyed);
  for (const auto& [key, value] : keyed.arguments) {
    if (content.place_of(key)) continue;
    std::vector<std::string> known;
    for (const auto& p : declared) known.push_back(p.name);
    throw Misuse(known.empty()
                     ? fmt::format("{}: takes no parameters, but {}={} was given; remove it", spec.name, key, value)
                     : fmt::format("{}: unknown parameter '{}'{}", spec.name, key, nearest_names(key, known)));
  }
  content.declared = std::make_shared<const std::vector<Parameter>>(std::move(declared));
  content_ = std::make_shared<const Content>(std::move(content));
}

void Params::declare(Content& content, std::vector<Parameter>& declared, const std::string& plural,
                     const std::string& name, const Spec& spec) {
  for (const auto& p : catalogue(plural).parameters(name)) {
    if (content.place_of(p.name))
      throw Misuse(fmt::format(
          "{}: {} '{}' has a parameter '{}', and another part of this spec has one too; they cannot be combined",
          content.name, catalogue(plural).kind(), name, p.name));
    const auto given = std::find_if(spec.arguments.begin(), spec.arguments.end(),
                                    [&](const auto& argument) { return argument.first == p.name; });
    const std::string value = checked(content.name, p, given == spec.arguments.end() ? p.default_value : given->second);
    declared.push_back(p);
    content.values.emplace_back(p.name, value);
    if (p.kind == Parameter::Kind::entry) declare(content, declared, p.catalogue, value, spec);
  }
}

std::optional<size_t> Params::Content::place_of(const std::string& parameter) const {
  for (size_t place = 0; place < values.size(); ++place)
    if (values[place].first == parameter) return place;
  return std::nullopt;
}

Index Params::integer(const std::string& parameter) const {
  Index value = 0;
  parse_number(text(parameter), value);  // checked at declaration
  return value;
}
double Params::real(const std::string& parameter) const {
  double value = 0;
  parse_number(text(parameter), value);
  return value;
}
bool Params::flag(const std::string& parameter) const { return text(parameter) == "true"; }
const std::string& Params::text(const std::string& parameter) const {
  const auto place = content_->place_of(parameter);
  if (!place) throw std::out_of_range(fmt::format("{} has no parameter '{}'", name(), parameter));
  return content_->values[*place].second;
}

Params Params::with(const std::string& parameter, const std::string& value) const {
  const auto place = content_->place_of(parameter);
  if (place) {
    const Parameter& p = declared()[*place];
    // The declared parameters stay the same.
    if (p.kind != Parameter::Kind::entry && p.kind != Parameter::Kind::specs) {
      Content changed = *content_;
      changed.values[*place].second = checked(name(), p, value);
      return Params(std::move(changed));
    }
  }
  Spec spec = parse_spec(this->spec());
  const bool keyless = place == 0u && declared().front().kind == Parameter::Kind::specs;  // its values have no key
  std::erase_if(spec.arguments, [&](const auto& argument) {
    return argument.first == parameter || (keyless && argument.first.empty());
  });
  spec.arguments.emplace_back(parameter, value);
  return {content_->plural, spec};
}

Params Params::with_entry(const std::string& parameter, const std::string& value) const {
  const Params old = nested(parameter), next(catalogue_of(parameter), Spec{value, {}});
  Spec spec = parse_spec(this->spec());
  std::erase_if(spec.arguments, [&](const auto& argument) {
    return argument.first == parameter || (old.has(argument.first) && !next.has(argument.first));
  });
  spec.arguments.emplace_back(parameter, value);
  return {content_->plural, spec};
}

const std::string& Params::catalogue_of(const std::string& parameter) const {
  const auto place = content_->place_of(parameter);
  if (!place || declared()[*place].catalogue.empty())
    throw std::logic_error(fmt::format("{}: '{}' names no entry", name(), parameter));
  return declared()[*place].catalogue;
}

Params Params::nested(const std::string& parameter) const {
  Params inner(catalogue_of(parameter), Spec{text(parameter), {}});
  // Carry values over until the nested declaration stops growing, because a value may bring in parameters of its own.
  for (size_t i = 0; i < inner.values().size(); ++i) {
    const auto key = inner.values()[i].first;
    if (inner.text(key) != text(key)) inner = inner.with(key, text(key));
  }
  return inner;
}

std::vector<Params> Params::all_nested(const std::string& parameter) const {
  std::vector<Params> all;
  for (const auto& [key, value] : parse_spec(name() + ":" + text(parameter)).arguments)
    all.emplace_back(catalogue_of(parameter), value);
  return all;
}

std::string Params::spec() const {
  Spec spec{name(), {}};
  for (size_t i = 0; i < declared().size(); ++i) {
    const Parameter& p = declared()[i];
    const std::string& value = values()[i].second;
    if (value == p.default_value || value == checked(name(), p, p.default_value)) continue;
    if (p.kind == Parameter::Kind::specs)
      for (auto& part : separated(name(), p, value)) spec.arguments.emplace_back("", std::move(part));
    else
      spec.arguments.push_back(values()[i]);
  }
  return to_string(spec);
}

std::vector<std::string> Params::source_files() const {
  std::vector<std::string> files = catalogue(content_->plural).source_files(name());
  const auto take = [&](const std::vector<std::string>& more) { files.insert(files.end(), more.begin(), more.end()); };
  for (const auto& p : declared()) {
    if (p.kind == Parameter::Kind::entry) take(catalogue(p.catalogue).source_files(text(p.name)));
    if (p.kind != Parameter::Kind::specs) continue;
    for (const Params& inner : all_nested(p.name)) take(inner.source_files());
  }
  return files;
}

}  // namespace attnbench

template class std::vector<attnbench::Parameter>;
