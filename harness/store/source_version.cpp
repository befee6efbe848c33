#include "harness/store/source_version.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <regex>
#include <sstream>
#include <stdexcept>

#include "harness/core/file_bytes.hpp"
#include "harness/random/streams.hpp"

namespace attnbench {

namespace {

namespace fs = std::filesystem;

// The longest known path that the given one ends with, at the boundary of a name; null if no path matches.
const std::string* known_path(const Sources& sources, const std::string& file) {
  const std::string given = "/" + fs::path(file).lexically_normal().generic_string();
  const std::string* longest = nullptr;
  for (const auto& [path, source] : sources)
    if (given.ends_with(path) && given[given.size() - path.size() - 1] == '/' &&
        (!longest || path.size() > longest->size()))
      longest = &path;
  return longest;
}

bool is_cpp(const std::string& file) { return file.ends_with(".cpp") || file.ends_with(".hpp"); }

std::vector<std::string> includes_of(const std::string& text) {
  static const std::regex include(R"re(^\s*#\s*include\s*"([^"]+)")re");
  std::vector<std::string> names;
  std::istringstream lines(text);
  std::smatch match;
  for (std::string line; std::getline(lines, line);)
    if (std::regex_search(line, match, include)) names.push_back(match[1]);
  return names;
}

// Collects the files that decide: files of the project by path, others with their content.
class Closure {
 public:
  explicit Closure(const Sources& sources) : sources_(sources) {}

  void add(const std::string& file) {
    if (const std::string* path = known_path(sources_, file)) return add_known(*path);
    const auto content = file_bytes(file);
    if (!content)
      throw std::logic_error(fmt::format(
          "'{}' was not a source of the project when the program was built, and cannot be read now; expected "
          "a file whose content can be hashed",
          file));
    add_foreign(file, *content);
  }

  const std::set<std::string>& known() const { return known_; }
  const std::map<std::string, std::string>& foreign() const { return foreign_; }

 private:
  void add_known(const std::string& path) {
    const auto found = sources_.find(path);
    if (found == sources_.end() || !known_.insert(path).second) return;
    for (const std::string& included : found->second.includes) add_known(included);
    if (path.ends_with(".hpp")) add_known(path.substr(0, path.size() - 4) + ".cpp");
  }

  void add_where(auto&& condition) {
    for (const auto& [path, source] : sources_)
      if (condition(path)) add_known(path);
  }

  void add_foreign(const std::string& file, const std::string& content) {
    if (!foreign_.emplace(file, content).second) return;
    if (file.ends_with(".py")) return add_where([](const auto& path) { return path.starts_with("harness/python/"); });
    if (!is_cpp(file)) return add_where([](const auto& path) { return path.ends_with(".hpp"); });
    for (const std::string& included : includes_of(content)) {
      add_known(included);
      const fs::path beside = fs::path(file).parent_path() / included;
      if (fs::exists(beside) && !sources_.contains(included)) add(beside.lexically_normal().string());
    }
    const std::string implementation = file.substr(0, file.size() - 4) + ".cpp";
    if (file.ends_with(".hpp") && fs::exists(implementation)) add(implementation);
  }

  const Sources& sources_;
  std::set<std::string> known_;
  std::map<std::string, std::string> foreign_;
};

Closure closure_of(const Sources& sources, const std::vector<std::string>& files) {
  Closure closure(sources);
  for (const std::string& file : files) closure.add(file);
  return closure;
}

}  // namespace

std::set<std::string> deciding_sources(const Sources& sources, const std::vector<std::string>& files) {
  return closure_of(sources, files).known();
}

std::string source_version(const Sources& sources, const std::vector<std::string>& files,
                           const std::vector<std::string>& alone) {
  const Closure closure = closure_of(sources, files);
  std::set<std::string> counted = closure.known();
  counted.insert(alone.begin(), alone.end());
  std::string text;
  // By content, not by path: the same plugin in another folder gives the same numbers.
  std::set<std::uint64_t> contents;
  for (const auto& [file, content] : closure.foreign()) contents.insert(hash_bytes(content));
  for (const std::uint64_t content : contents) text += fmt::format("{:016x}\n", content);
  for (const std::string& path : counted) text += fmt::format("{} {}\n", path, sources.at(path).hash);
  return fmt::format("{:016x}", hash_bytes(text));
}

}  // namespace attnbench
