#include "harness/store/source_version.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string_view>

#include "harness/random/streams.hpp"

namespace attnbench {

namespace {

using Hashes = std::map<std::string, std::string>;

// Folders, and of the runner the two files that draw and apply.
constexpr std::array<std::string_view, 11> counted_prefixes = {
    "harness/core/",   "harness/linalg/",      "harness/random/",          "harness/statistics/",
    "harness/theory/", "harness/inputs/",      "harness/measures/",        "harness/machine/",
    "harness/timing/", "harness/runner/exact", "harness/runner/experiment"};

bool registers_an_input(std::string_view path) {
  return path.starts_with("harness/inputs/laws/") || path == "harness/inputs/file.cpp" ||
         path == "harness/inputs/model.cpp";
}

bool is_engine(const Hashes& hashes, std::string_view path) {
  if (!path.starts_with("approximations/")) return false;
  if (path.ends_with(".hpp")) return true;
  return path.ends_with(".cpp") && hashes.contains(std::string(path.substr(0, path.size() - 4)) + ".hpp");
}

bool counts_for_every_cell(const Hashes& hashes, std::string_view path) {
  const bool harness = std::ranges::any_of(counted_prefixes, [&](auto prefix) { return path.starts_with(prefix); });
  return (harness && !registers_an_input(path)) || is_engine(hashes, path);
}

// The longest known path that the given one ends with, at the boundary of a name; null when there is none.
const std::string* known_path(const Hashes& hashes, const std::string& file) {
  const std::string given = "/" + std::filesystem::path(file).lexically_normal().generic_string();
  const std::string* longest = nullptr;
  for (const auto& [path, hash] : hashes)
    if (given.ends_with("/" + path) && (!longest || path.size() > longest->size())) longest = &path;
  return longest;
}

// Sources from outside the project's folders, linked in by somebody else's build.
std::string hash_of_foreign_file(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream)
    throw std::logic_error(
        fmt::format("'{}' was no source of the project when the program was built, and cannot be read "
                    "now; expected a .cpp or .hpp whose content can be hashed",
                    file));
  return fmt::format("{:016x}", hash_bytes(std::string(std::istreambuf_iterator<char>(stream), {})));
}

}  // namespace

std::string source_version(const Hashes& hashes, const std::vector<std::string>& files) {
  std::set<std::string> counted;
  const bool python = std::ranges::any_of(files, [](const std::string& file) { return file.ends_with(".py"); });
  for (const auto& [path, hash] : hashes)
    if (counts_for_every_cell(hashes, path) || (python && path.starts_with("harness/python/"))) counted.insert(path);
  std::string text;
  for (const std::string& file : files) {
    if (const auto* path = known_path(hashes, file))
      counted.insert(*path);
    else
      text += hash_of_foreign_file(file) + "\n";
  }
  for (const std::string& path : counted) text += fmt::format("{} {}\n", path, hashes.at(path));
  return fmt::format("{:016x}", hash_bytes(text));
}

}  // namespace attnbench
