#include "harness/core/entry_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace attnbench {

namespace {

bool name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

struct Owned {
  std::string plural, entry;  // the entry that has the parameter
  std::string key;            // the parameter that brings the entry into the spec
};
using Names = std::map<std::string, Owned>;  // by the parameter's name

// The parameters that `key` may bring into a spec, at any depth. `seen`: entries that were visited before. A method is
// what a user writes: a spec that names one with a parameter of the same name is refused when it is read.
void add_below(const Parameter& key, std::set<std::string>& seen, Names& names) {
  if (key.catalogue == "methods") return;
  for (const auto& name : catalogue(key.catalogue).names()) {
    if (!seen.insert(key.catalogue + " " + name).second) continue;
    for (const Parameter& p : catalogue(key.catalogue).parameters(name)) {
      names.try_emplace(p.name, Owned{key.catalogue, name, key.name});
      if (p.kind == Parameter::Kind::entry) add_below(p, seen, names);
    }
  }
}

// The parameters of all entries that may name one of that plural; not of those that may name a method in turn.
void add_above(const std::string& plural, std::set<std::string>& seen, Names& names) {
  if (plural == "methods") return;
  for (const auto& [other, entries] : catalogues())
    for (const auto& name : entries->names()) {
      const auto& parameters = entries->parameters(name);
      const auto key = std::find_if(parameters.begin(), parameters.end(), [&](const Parameter& p) {
        return p.kind == Parameter::Kind::entry && p.catalogue == plural;
      });
      if (key == parameters.end() || !seen.insert(other + " " + name).second) continue;
      for (const Parameter& p : parameters) names.try_emplace(p.name, Owned{other, name, key->name});
      add_above(other, seen, names);
    }
}

[[noreturn]] void refuse(const std::string& name, const std::string& rule) {
  throw Misuse(fmt::format("parameter '{}' {}", name, rule));
}

void refuse_shared(const Parameter& p, const Names& names, const char* how) {
  const auto found = names.find(p.name);
  if (found == names.end()) return;
  const auto& [plural, entry, key] = found->second;
  refuse(p.name, fmt::format("is also one of {} '{}', which {}; rename it", catalogue(plural).kind(), entry,
                             fmt::format(fmt::runtime(how), key)));
}

}  // namespace

bool is_name(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), name_character); }

const std::vector<std::string>& problem_axes() {
  static const std::vector<std::string> names{"n", "d", "dv", "heads", "logit_scale", "round"};
  return names;
}

void refuse_unusable_names(const std::string& plural, const Description& text,
                           const std::vector<Parameter>& parameters) {
  if (!is_name(text.name))
    throw Misuse(
        fmt::format("the name '{}' cannot be written in a spec; expected letters, digits, - and _", text.name));
  Names above;
  std::set<std::string> seen{plural + " " + text.name};
  add_above(plural, seen, above);
  Names own, below;
  for (const Parameter& p : parameters) {
    if (!is_name(p.name)) refuse(p.name, "cannot be written in a spec; expected letters, digits, - and _");
    if (!own.try_emplace(p.name, Owned{plural, text.name, ""}).second) refuse(p.name, "is declared twice; rename one");
    const auto& axes = problem_axes();
    if (std::find(axes.begin(), axes.end(), p.name) != axes.end())
      refuse(p.name, fmt::format("has the name of a size; --sweep would vary either: rename it (sizes are {})",
                                 fmt::join(axes, ", ")));
    refuse_shared(p, above, "may name this entry as {}");
  }
  for (const Parameter& key : parameters) {
    if (key.kind != Parameter::Kind::entry) continue;
    Names brought;
    seen = {plural + " " + text.name};
    add_below(key, seen, brought);
    for (const Parameter& p : parameters) refuse_shared(p, brought, "this entry may name as {}");
    for (const auto& [name, owner] : brought)
      if (!below.try_emplace(name, owner).second)
        refuse(name, fmt::format("comes with {}=... and with {}=...; a spec could not tell which is meant",
                                 below.at(name).key, owner.key));
    for (const auto& [name, owner] : brought)
      if (const auto found = above.find(name); found != above.end())
        refuse(name,
               fmt::format("of {} '{}' is also one of {} '{}'; another name is needed", catalogue(owner.plural).kind(),
                           owner.entry, catalogue(found->second.plural).kind(), found->second.entry));
  }
}

}  // namespace attnbench
