#include "harness/core/registry.hpp"

#include <algorithm>

namespace attnbench {

namespace {
std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
  return text;
}
}  // namespace

Catalogue::Catalogue(std::string kind, std::string plural) : kind_(std::move(kind)), plural_(std::move(plural)) {
  catalogues()[plural_] = this;
}

bool Catalogue::fill_by(std::function<void()> add_entries) {
  add_entries_ = std::move(add_entries);
  return true;
}

void Catalogue::fill() const {
  if (const auto add_entries = std::exchange(add_entries_, nullptr)) add_entries();
}

std::vector<std::string> Catalogue::names() const {
  fill();
  std::vector<std::string> all;
  for (const auto& [name, stored] : entries_) all.push_back(name);
  return all;
}

const Description& Catalogue::description(const std::string& name) const { return *stored(name).text; }

const std::vector<Parameter>& Catalogue::parameters(const std::string& name) const { return *stored(name).parameters; }

const std::vector<std::string>& Catalogue::source_files(const std::string& name) const { return stored(name).files; }

void Catalogue::set_files(const std::string& name, std::vector<std::string> files) {
  entries_.at(name).files = std::move(files);
}

bool Catalogue::store(Stored entry) {
  const std::string& name = entry.text->name;
  const auto refuse = [&](const std::string& twice, const std::string& first) {
    duplicate_registrations().push_back(kind_ + " '" + twice + "' (" + entries_.at(first).files.front() + ", " +
                                        entry.files.front() + ")");
    return false;
  };
  if (entries_.contains(name)) return refuse(name, name);
  for (const std::string& alias : entry.text->aliases)
    if (aliases_.contains(alias)) return refuse(alias, aliases_.at(alias));
  for (const std::string& alias : entry.text->aliases) aliases_[alias] = name;
  entries_.emplace(name, entry);
  return true;
}

const std::string* Catalogue::entry_name(const std::string& name_or_alias) const {
  fill();
  if (const auto found = entries_.find(name_or_alias); found != entries_.end()) return &found->first;
  const auto alias = aliases_.find(lower(name_or_alias));
  return alias == aliases_.end() ? nullptr : &alias->second;
}

const std::string& Catalogue::canonical(const std::string& name) const {
  if (const std::string* found = entry_name(name)) return *found;
  std::vector<std::string> aliases;
  for (const auto& [alias, entry] : aliases_) aliases.push_back(alias);
  throw Misuse("unknown " + kind_ + " '" + name + "'" + nearest_names(name, names(), aliases));
}

const Catalogue::Stored& Catalogue::stored(const std::string& name) const { return entries_.at(canonical(name)); }

std::map<std::string, Catalogue*>& catalogues() {
  static std::map<std::string, Catalogue*> all;
  return all;
}

std::vector<std::string>& duplicate_registrations() {
  static std::vector<std::string> names;
  return names;
}

const Catalogue& catalogue(const std::string& plural) {
  const auto found = catalogues().find(plural);
  if (found == catalogues().end()) throw std::logic_error("no catalogue of " + plural);
  return *found->second;
}

}  // namespace attnbench
