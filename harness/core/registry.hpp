// Registries: what exists is what has registered itself. An entry's text and parameters are plain data; a file adds
// itself with one line at namespace scope:
//   const bool registered = add(MethodEntry{...});
// Nothing lists the files. Duplicate names are kept aside and reported by main (exit 2).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/core/abi.hpp"
#include "harness/core/error.hpp"
#include "harness/core/parameters.hpp"

namespace attnbench {

// What `list` and `describe` print. One line each, except formula and notes.
struct Description {
  std::string name;
  std::string summary;    // what it is, in one line
  std::string formula;    // the mathematics, plain text
  std::string reference;  // paper and equation
  std::string cost;       // time and memory, in n, d, dv and the parameters
  std::string family;     // selects what a parameter may name: "linear", "sparse" ...
};

// A kind of entry as seen by name: what specs, `list` and `describe` need.
class Catalogue {
 public:
  virtual ~Catalogue() = default;
  virtual std::string kind() const = 0;    // "method", "feature map", ...
  virtual std::string plural() const = 0;  // the word of `list`: "methods", "features", ...
  virtual std::vector<std::string> names() const = 0;
  virtual const Description& description(const std::string& name) const = 0;  // throws Misuse with the nearest names
  virtual const std::vector<Parameter>& parameters(const std::string& name) const = 0;
  virtual const std::string& source_file(const std::string& name) const = 0;
};

// Every catalogue by plural. Filled by the registries themselves.
std::map<std::string, Catalogue*>& catalogues();
// Names that were registered twice: "kind name (first file, second file)".
std::vector<std::string>& duplicate_registrations();
// The catalogue of that plural; throws std::logic_error when there is none (a defect, not misuse).
const Catalogue& catalogue(const std::string& plural);

// Entry has text (Description), parameters (vector<Parameter>) and static constexpr kind, plural.
template <class Entry>
class Registry final : public Catalogue {
 public:
  static Registry& instance() {
    static Registry registry;
    return registry;
  }

  bool add(Entry entry, std::string file) {
    const std::string name = entry.text.name;
    const auto [place, fresh] = entries_.try_emplace(name, Stored{std::move(entry), file});
    if (!fresh)
      duplicate_registrations().push_back(kind() + " '" + name + "' (" + place->second.file + ", " + file + ")");
    return fresh;
  }

  const Entry& find(const std::string& name) const { return stored(name).entry; }

  std::string kind() const override { return Entry::kind; }
  std::string plural() const override { return Entry::plural; }
  std::vector<std::string> names() const override {
    std::vector<std::string> all;
    for (const auto& [name, stored] : entries_) all.push_back(name);
    return all;
  }
  const Description& description(const std::string& name) const override { return find(name).text; }
  const std::vector<Parameter>& parameters(const std::string& name) const override { return find(name).parameters; }
  const std::string& source_file(const std::string& name) const override { return stored(name).file; }

 private:
  struct Stored {
    Entry entry;
    std::string file;
  };

  Registry() { catalogues()[Entry::plural] = this; }

  const Stored& stored(const std::string& name) const {
    const auto found = entries_.find(name);
    if (found == entries_.end()) {
      const auto known = names();
      throw Misuse("unknown " + kind() + " '" + name + "'" + nearest_names(name, known));
    }
    return found->second;
  }

  std::map<std::string, Stored> entries_;
};

template <class Entry>
bool add(Entry entry,
         const char* file = __builtin_FILE()) {  // std::source_location is not in clang 14 with libstdc++ 12
  return Registry<Entry>::instance().add(std::move(entry), file);
}

template <class Entry>
const Entry& find(const std::string& name) {
  return Registry<Entry>::instance().find(name);
}

}  // namespace attnbench
