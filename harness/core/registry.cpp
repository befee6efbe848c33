#include "harness/core/registry.hpp"

namespace attnbench {

Catalogue::Catalogue(std::string kind, std::string plural) : kind_(std::move(kind)), plural_(std::move(plural)) {
  catalogues()[plural_] = this;
}

std::vector<std::string> Catalogue::names() const {
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
  const auto [place, fresh] = entries_.try_emplace(name, entry);
  if (!fresh)
    duplicate_registrations().push_back(kind_ + " '" + name + "' (" + place->second.files.front() + ", " +
                                        entry.files.front() + ")");
  return fresh;
}

const Catalogue::Stored& Catalogue::stored(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) throw Misuse("unknown " + kind_ + " '" + name + "'" + nearest_names(name, names()));
  return found->second;
}

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
