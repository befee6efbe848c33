// Registries: the entries are those that have registered themselves. An entry's text and parameters are plain data. A
// file adds itself with one line at namespace scope:
//   const bool registered = add(MethodEntry{...});
// No list of files exists. Duplicate names are set aside, and main reports them (exit 2).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/abi.hpp"
#include "harness/core/parameters.hpp"
#include "harness/errors/error.hpp"

namespace attnbench {

// The texts of `list` and `describe`. One line each, except the formula.
struct Description {
  std::string name;
  std::string printed = {};               // in figures and tables, such as "Performer"; empty: the name, capitalised
  std::string summary;                    // one line
  std::string formula;                    // the mathematics, plain text
  std::string reference;                  // paper and equation
  std::string cost;                       // time and memory, in n, d, dv and the parameters
  std::string family;                     // of methods and feature maps, "sparse" or "positive": its colour in figures
  std::string departure;                  // where it does something else than its reference, and why; empty: nowhere
  std::vector<std::string> aliases = {};  // lower-case names that a user may type instead; nothing else shows them
};

// The entries of one kind by name. Code that does not depend on the type of an entry is compiled once, in registry.cpp,
// because nearly every file of the project reads a registry.
class Catalogue {
 public:
  Catalogue(std::string kind, std::string plural);  // adds itself to catalogues()
  Catalogue(const Catalogue&) = delete;
  Catalogue& operator=(const Catalogue&) = delete;

  const std::string& kind() const { return kind_; }      // "method", "feature map", ...
  const std::string& plural() const { return plural_; }  // the word of `list`: "methods", "features", ...
  std::vector<std::string> names() const;
  // Whether an entry has this name or this alias. A name wins over an equal alias, so that a plugin may take any name
  // that no entry has. An alias may be typed in upper or lower case ("FAVOR").
  bool has(const std::string& name) const { return entry_name(name) != nullptr; }
  // The name of the entry that has this name or alias. Throws Misuse with the nearest names.
  const std::string& canonical(const std::string& name) const;
  const Description& description(const std::string& name) const;  // throws Misuse with the nearest names
  const std::vector<Parameter>& parameters(const std::string& name) const;
  // The file that registers the entry, and any files outside the project's own sources that it names.
  const std::vector<std::string>& source_files(const std::string& name) const;
  // Called before the first entry is asked for: adds those that are read from files.
  bool fill_by(std::function<void()> add_entries);

 protected:
  struct Stored {
    std::shared_ptr<void> entry;
    const Description* text;  // part of the entry, like its parameters
    const std::vector<Parameter>* parameters;
    std::vector<std::string> files;
  };
  bool store(Stored entry);  // false if the name exists already, or an alias as an alias
  const Stored& stored(const std::string& name) const;
  void set_files(const std::string& name, std::vector<std::string> files);

 private:
  const std::string* entry_name(const std::string& name_or_alias) const;  // null if unknown
  void fill() const;

  std::string kind_, plural_;
  std::map<std::string, Stored> entries_;
  std::map<std::string, std::string> aliases_;  // to names
  mutable std::function<void()> add_entries_;   // null once it was called
};

// Every catalogue by plural. The registries add themselves.
std::map<std::string, Catalogue*>& catalogues();
// Names registered twice: "kind name (first file, second file)".
std::vector<std::string>& duplicate_registrations();
// The catalogue of that plural. Throws std::logic_error for an unknown one (a defect, not misuse).
const Catalogue& catalogue(const std::string& plural);

// Entry has text (Description), parameters (vector<Parameter>) and static constexpr kind, plural. The header that
// defines a kind of entry declares its registry as compiled elsewhere, because each file that registers one would
// compile it again.
template <class Entry>
class Registry final : public Catalogue {
 public:
  static Registry& instance();
  bool add(Entry&& entry, std::vector<std::string> files);
  // The same for a file of the project.
  bool add(Entry&& entry, const char* file);
  // Replaces the entry of that name; references to it stay valid.
  void replace(Entry entry, std::vector<std::string> files);
  const Entry& find(const std::string& name) const { return *static_cast<const Entry*>(stored(name).entry.get()); }

 private:
  Registry() : Catalogue(Entry::kind, Entry::plural) {}
};

template <class Entry>
Registry<Entry>& Registry<Entry>::instance() {
  static Registry registry;
  return registry;
}

template <class Entry>
bool Registry<Entry>::add(Entry&& entry, std::vector<std::string> files) {
  const auto kept = std::make_shared<Entry>(std::move(entry));
  return store({kept, &kept->text, &kept->parameters, std::move(files)});
}

template <class Entry>
bool Registry<Entry>::add(Entry&& entry, const char* file) {
  return add(std::move(entry), std::vector<std::string>{file});
}

template <class Entry>
void Registry<Entry>::replace(Entry entry, std::vector<std::string> files) {
  const std::string name = entry.text.name;
  *static_cast<Entry*>(stored(name).entry.get()) = std::move(entry);
  set_files(name, std::move(files));
}

template <class Entry>
bool add(Entry&& entry,
         const char* file = __builtin_FILE()) {  // std::source_location is not in clang 14 with libstdc++ 12
  return Registry<Entry>::instance().add(std::forward<Entry>(entry), file);
}

template <class Entry>
const Entry& find(const std::string& name) {
  return Registry<Entry>::instance().find(name);
}

}  // namespace attnbench
