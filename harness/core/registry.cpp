#include "harness/core/registry.hpp"

namespace attnbench {

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
