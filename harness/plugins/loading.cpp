// The worker's side: reads plugins, compares them with this program and loads them.
#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/core/entry_names.hpp"
#include "harness/core/feature_map.hpp"
#include "harness/core/file_bytes.hpp"
#include "harness/core/installed.hpp"
#include "harness/core/key_score.hpp"
#include "harness/experiment/experiment.hpp"
#include "harness/inputs/input.hpp"
#include "harness/plugins/plugins.hpp"
#include "harness/store/build_facts.hpp"

namespace attnbench {

namespace fs = std::filesystem;

namespace {

using Names = std::map<std::string, std::set<std::string>>;  // by plural

std::function<void(const fs::path&)> load_python;

Names registered_names() {
  Names all;
  for (const auto& [plural, catalogue] : catalogues()) {
    const auto names = catalogue->names();
    all[plural] = {names.begin(), names.end()};
  }
  return all;
}

// "a=1;b=2" by name.
std::map<std::string, std::string> fields(const std::string& text) {
  std::map<std::string, std::string> all;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(';', begin), text.size()), equals = text.find('=', begin);
    if (equals < end) all[text.substr(begin, equals - begin)] = text.substr(equals + 1, end - equals - 1);
    begin = end + 1;
  }
  return all;
}

// For the folder of a plugin's sources. An attnbench that is not installed has no CMake package.
std::string build_command() {
  const fs::path& prefix = installation();
  const bool installed = !prefix.empty();
  return fmt::format("{}cmake -B build -DCMAKE_PREFIX_PATH={} && cmake --build build",
                     installed ? "" : "cmake --install, then ", installed ? prefix.string() : "PREFIX");
}

void require_same_abi(const fs::path& file) {
  const auto bytes = file_bytes(file);
  if (!bytes) throw Misuse("it cannot be read");
  if (!bytes->starts_with("\x7f"
                          "ELF"))
    throw Misuse("it is not a shared library");
  const size_t found = bytes->find(ATTNBENCH_ABI_PREFIX);
  if (found == std::string::npos)
    throw Misuse(
        "it is a shared library, but no plugin: it includes none of attnbench's headers; build it with the "
        "CMake target attnbench::plugin");
  const auto theirs = fields(bytes->c_str() + found + std::string_view(ATTNBENCH_ABI_PREFIX).size());
  auto ours = fields(ATTNBENCH_ABI);
  ours["headers"] = build_facts().headers;
  std::vector<std::string> differences;
  for (const auto& [name, value] : ours) {
    const auto other = theirs.find(name);
    if (other == theirs.end() || other->second != value)
      differences.push_back(fmt::format("{}: {}, where this program has {}", name,
                                        other == theirs.end() ? "none" : other->second, value));
  }
  if (!differences.empty())
    throw Misuse(fmt::format("it was built for another attnbench ({}); build it again for this one: {}",
                             fmt::join(differences, "; "), build_command()));
}

void load_library(const fs::path& file) {
  require_same_abi(file);
  if (!dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) throw Misuse(fmt::format("it cannot be loaded: {}", dlerror()));
}

void load(const fs::path& file) {
  try {
    if (!is_python(file)) return load_library(file);
    if (!load_python) throw std::logic_error("a process without Python cannot load a Python plugin");
    load_python(file);
  } catch (const Misuse&) {
    throw;
  } catch (const std::exception& e) {
    throw Misuse(fmt::format("it threw while it registered: {}", e.what()));
  }
}

// Names the parts that an entry lacks; empty if it lacks nothing.
std::string missing_of(const std::string& plural, const std::string& name) {
  std::vector<std::string> missing;
  const auto require = [&](bool there, const char* what) {
    if (!there) missing.emplace_back(what);
  };
  if (plural == MethodEntry::plural) {
    const auto& entry = find<MethodEntry>(name);
    require(!!entry.f32, "f32 (the method in float)");
    require(!!entry.f64, "f64 (the method in double)");
    require(!!entry.claims, "claims");
    require(!!entry.memory, "memory");
    require(!!entry.cost, "cost");
  } else if (plural == FeatureMapEntry::plural || plural == DeterministicMapEntry::plural) {
    const FeatureMapEntry& entry = plural == FeatureMapEntry::plural
                                       ? find<FeatureMapEntry>(name)
                                       : static_cast<const FeatureMapEntry&>(find<DeterministicMapEntry>(name));
    require(!!entry.f32, "f32 (the map in float)");
    require(!!entry.f64, "f64 (the map in double)");
    require(!!entry.features, "features (their number)");
  } else if (plural == ProjectionEntry::plural) {
    require(!!find<ProjectionEntry>(name).draw, "draw");
    require(!!find<ProjectionEntry>(name).law, "law");
  } else if (plural == KeyScoreEntry::plural) {
    require(!!find<KeyScoreEntry>(name).score, "score");
  } else if (plural == InputEntry::plural) {
    require(!!find<InputEntry>(name).draw, "draw");
  } else if (plural == ExperimentEntry::plural) {
    require(find<ExperimentEntry>(name).run || find<ExperimentEntry>(name).timing(), "run");
  }
  return fmt::format("{}", fmt::join(missing, ", "));
}

void require_usable_names(const std::string& plural, const std::string& name) {
  const Catalogue& in = catalogue(plural);
  try {
    refuse_unusable_names(plural, in.description(name), in.parameters(name));
  } catch (const Misuse& e) {
    throw Misuse(fmt::format("its {} '{}': {}", in.kind(), name, e.what()));
  }
}

// An entry of a library names the library as its source, and not the file that it was compiled from: the library is
// what decides its numbers.
template <class... Entries>
void set_source(const PluginEntry& entry) {
  const auto set = [&]<class Entry>(Registry<Entry>& registry) {
    registry.replace(registry.find(entry.name), {entry.file.string()});
    return true;
  };
  (void)((entry.plural == Entries::plural && set(Registry<Entries>::instance())) || ...);
}

std::vector<PluginEntry> entries_since(const Names& before, const fs::path& file) {
  static const std::set<std::string> allowed{
      MethodEntry::plural,   FeatureMapEntry::plural, DeterministicMapEntry::plural, ProjectionEntry::plural,
      KeyScoreEntry::plural, InputEntry::plural,      ExperimentEntry::plural};
  std::vector<PluginEntry> entries;
  for (const auto& [plural, names] : registered_names())
    for (const auto& name : names) {
      if (const auto known = before.find(plural); known != before.end() && known->second.contains(name)) continue;
      const std::string kind = catalogue(plural).kind();
      if (!allowed.contains(plural))
        throw Misuse(
            fmt::format("it registers the {} '{}'; plugins have methods, feature maps, projections, key scores, inputs "
                        "and experiments",
                        kind, name));
      if (const auto missing = missing_of(plural, name); !missing.empty())
        throw Misuse(fmt::format("its {} '{}' lacks {}", kind, name, missing));
      require_usable_names(plural, name);
      entries.push_back({plural, name, file});
    }
  return entries;
}

}  // namespace

std::string taken_name() {
  return fmt::format("it registers a name that is taken: {}; give it another", duplicate_registrations().front());
}

void set_python_loader(std::function<void(const fs::path&)> loader) { load_python = std::move(loader); }

std::vector<PluginEntry> load_plugin(const fs::path& file) {
  try {
    const Names before = registered_names();
    load(file);
    if (!duplicate_registrations().empty()) throw Misuse(taken_name());
    auto entries = entries_since(before, file);
    if (entries.empty()) throw Misuse("it registers nothing");
    if (!is_python(file))
      for (const PluginEntry& entry : entries)
        set_source<MethodEntry, FeatureMapEntry, DeterministicMapEntry, ProjectionEntry, KeyScoreEntry, InputEntry,
                   ExperimentEntry>(entry);
    return entries;
  } catch (const Misuse& e) {
    throw Misuse(fmt::format("plugin {}: {}", file.string(), e.what()));
  }
}

std::vector<PluginEntry> load_plugins() {
  std::vector<PluginEntry> all;
  for (const fs::path& file : plugins().files) {
    const auto entries = load_plugin(file);
    all.insert(all.end(), entries.begin(), entries.end());
  }
  return all;
}

}  // namespace attnbench
