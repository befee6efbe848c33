// Dependencies point one way: approximations -> harness <- experiments, and down the floors of the harness.
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>

#include "tests/catch.hpp"

namespace {

namespace fs = std::filesystem;

const fs::path root = ATTNBENCH_SOURCE_DIR;

std::vector<fs::path> sources(const std::string& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(root / folder))
    if (entry.path().extension() == ".cpp" || entry.path().extension() == ".hpp") files.push_back(entry.path());
  return files;
}

std::vector<std::string> included(const fs::path& file) {
  static const std::regex pattern("^\\s*#\\s*include\\s*\"([^\"]+)\"");
  std::vector<std::string> names;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);)
    if (std::smatch match; std::regex_search(line, match, pattern)) names.push_back(match[1]);
  return names;
}

}  // namespace

TEST_CASE("approximations and experiments include the harness and themselves only, and the harness neither", "[unit]") {
  const std::map<std::string, std::vector<std::string>> allowed{{"approximations", {"approximations/", "harness/"}},
                                                                {"experiments", {"experiments/", "harness/"}},
                                                                {"harness", {"harness/"}}};
  for (const auto& [folder, prefixes] : allowed) {
    const auto files = sources(folder);
    REQUIRE_FALSE(files.empty());
    for (const auto& file : files)
      for (const auto& name : included(file)) {
        INFO(file << " includes " << name);
        CHECK(std::any_of(prefixes.begin(), prefixes.end(), [&](const auto& p) { return name.starts_with(p); }));
      }
  }
}

// The floors of harness/, the lowest first. Folders of one line do not know each other. docs/architecture.md says what
// belongs on which floor.
TEST_CASE("a folder of the harness includes itself and the floors below it only", "[unit]") {
  const std::vector<std::vector<std::string>> floors{
      {"errors"},  {"linalg"}, {"random"}, {"core"},    {"statistics", "theory"}, {"measures"}, {"machine"},
      {"claims"},  {"inputs"}, {"store"},  {"figures"}, {"experiment"},           {"plugins"},  {"timing"},
      {"workers"}, {"runner"}, {"cli"},    {"python"}};
  std::map<std::string, size_t> floor_of;
  for (size_t floor = 0; floor < floors.size(); ++floor)
    for (const auto& folder : floors[floor]) floor_of[folder] = floor;
  std::map<std::string, int> files_in;
  for (const auto& file : sources("harness")) {
    const std::string folder = fs::relative(file, root / "harness").begin()->string();
    REQUIRE(floor_of.contains(folder));
    ++files_in[folder];
    for (const auto& name : included(file)) {
      INFO(file << " includes " << name);
      const std::string other = (++fs::path(name).begin())->string();
      CHECK(floor_of.contains(other));
      CHECK((other == folder || floor_of[other] < floor_of[folder]));
    }
  }
  CHECK(files_in.size() == floor_of.size());
}

TEST_CASE("no file outside approximations names a method file, and no CMake line names a method", "[unit]") {
  std::string cmake;
  for (const char* file : {"CMakeLists.txt", "tests/CMakeLists.txt"}) {
    std::ifstream stream(root / file);
    REQUIRE(stream);
    cmake.append(std::istreambuf_iterator<char>(stream), {});
  }
  for (const auto& file : sources("approximations")) {
    INFO(file);
    CHECK(cmake.find(file.filename().string()) == std::string::npos);
  }
}

// Two classes of one name in one namespace are undefined behaviour that no compiler reports, even when no file sees
// both.
TEST_CASE("no two headers define a class of the same name", "[unit]") {
  static const std::regex definition("^(?:class|struct|enum class) (\\w+)(?: [^;]*)?$"),
      space("^namespace ([\\w:]+) \\{$");
  std::map<std::string, fs::path> defined;
  for (const char* folder : {"approximations", "experiments", "harness", "tests"})
    for (const auto& file : sources(folder)) {
      if (file.extension() != ".hpp") continue;
      std::ifstream stream(file);
      std::smatch match;
      std::string scope;
      for (std::string line; std::getline(stream, line);)
        if (std::regex_search(line, match, space)) {
          scope = match[1];
        } else if (std::regex_search(line, match, definition)) {
          const auto [place, fresh] = defined.emplace(scope + "::" + match[1].str(), file);
          INFO(place->first << " in " << file << " and in " << place->second);
          CHECK((fresh || place->second == file));
        }
    }
  CHECK(defined.size() > 100);
}

// ctest runs tests by their tags: one without would never be run.
TEST_CASE("every test has a tag that is run", "[unit]") {
  static const std::regex test("TEST_CASE\\(((?:\\s*\"(?:[^\"\\\\]|\\\\.)*\")+)(\\s*,\\s*\"([^\"]*)\")?");
  static const std::regex known(
      "\\[(unit|build|recipes|methods|second-paths|statistics|end-to-end|faults|threads|\\.)");
  int tests = 0;
  for (const auto& file : sources("tests")) {
    std::ifstream stream(file);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    for (std::sregex_iterator one(text.begin(), text.end(), test), end; one != end; ++one, ++tests) {
      INFO(file << ": " << (*one)[1]);
      CHECK(std::regex_search((*one)[3].str(), known));
    }
  }
  CHECK(tests > 300);
}
