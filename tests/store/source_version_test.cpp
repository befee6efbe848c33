// Source versions: on made-up sources, whose answer is known, and on this build's own, against what its object files
// need of each other.
#include "harness/store/source_version.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "harness/core/registry.hpp"
#include "harness/experiment/cell_row.hpp"
#include "harness/store/environment.hpp"
#include "harness/store/store.hpp"
#include "tests/catch.hpp"
#include "tests/store/results_file.hpp"

namespace attnbench {

namespace {

namespace fs = std::filesystem;
using Names = std::set<std::string>;

const Sources made_up{
    {"approximations/a.cpp", {"1", {"approximations/engine.hpp", "system.hpp"}}},
    {"approximations/b.cpp", {"2", {"harness/core.hpp"}}},
    {"approximations/engine.hpp", {"3", {"harness/core.hpp"}}},
    {"approximations/engine.cpp", {"4", {"approximations/engine.hpp", "harness/inner.hpp"}}},
    {"harness/core.hpp", {"5", {}}},
    {"harness/inner.hpp", {"6", {"approximations/engine.hpp"}}},  // a circle
    {"harness/python/calls.cpp", {"7", {"harness/core.hpp"}}},
    {"harness/store.cpp", {"8", {"harness/store.hpp"}}},
    {"harness/store.hpp", {"9", {}}},
};

// The version with another hash for one file.
std::string changed(const std::string& path, const std::vector<std::string>& files,
                    const std::vector<std::string>& alone = {}) {
  Sources other = made_up;
  other[path].hash = "changed";
  return source_version(other, files, alone);
}

// The files of a plugin, which live as long as the object.
class PluginFiles {
 public:
  explicit PluginFiles(const std::map<std::string, std::string>& files) {
    for (const auto& [name, text] : files) overwrite(folder_ / name, text);
  }
  std::string file(const std::string& name) const { return folder_ / name; }

 private:
  Folder folder_;
};

}  // namespace

TEST_CASE("what a file includes decides, with the .cpp beside each header, and nothing else does", "[unit]") {
  const std::vector<std::string> files{"/home/me/attnbench/approximations/a.cpp"};
  const Names expected{"approximations/a.cpp", "approximations/engine.cpp", "approximations/engine.hpp",
                       "harness/core.hpp", "harness/inner.hpp"};
  CHECK(deciding_sources(made_up, files) == expected);
  const std::string before = source_version(made_up, files);
  CHECK(before.size() == 16);
  for (const auto& [path, source] : made_up) {
    CAPTURE(path);
    CHECK((changed(path, files) != before) == expected.contains(path));
  }
  Sources more = made_up;
  more["approximations/c.cpp"] = {"10", {"approximations/engine.hpp"}};
  CHECK(source_version(more, files) == before);
  CHECK(source_version(made_up, {"./approximations/b.cpp", files[0]}) ==
        source_version(made_up, {files[0], "../approximations/b.cpp", "approximations/b.cpp"}));
  CHECK(source_version(made_up, {"approximations/b.cpp", files[0]}) != before);
  CHECK(deciding_sources(made_up, {}).empty());
}

TEST_CASE("a source that counts alone does not bring what it includes", "[unit]") {
  const std::vector<std::string> files{"approximations/b.cpp"}, alone{"harness/store.cpp"};
  const std::string before = source_version(made_up, files, alone);
  CHECK(before != source_version(made_up, files));
  CHECK(changed("harness/store.cpp", files, alone) != before);
  CHECK(changed("harness/store.hpp", files, alone) == before);
}

TEST_CASE("a file from outside the project counts by its content, its own headers and the project's", "[unit]") {
  const PluginFiles plugin({{"method.cpp", "#include \"own.hpp\"\n  #  include \"approximations/engine.hpp\"\n"},
                            {"own.hpp", "#include \"harness/store.hpp\"\n"},
                            {"own.cpp", "int one = 1;\n"},
                            {"other.hpp", "int two = 2;\n"}});
  const std::vector<std::string> files{plugin.file("method.cpp")};
  CHECK(deciding_sources(made_up, files) == Names{"approximations/engine.cpp", "approximations/engine.hpp",
                                                  "harness/core.hpp", "harness/inner.hpp", "harness/store.cpp",
                                                  "harness/store.hpp"});
  const std::string before = source_version(made_up, files);
  CHECK(changed("approximations/engine.cpp", files) != before);
  CHECK(changed("approximations/a.cpp", files) == before);
  std::ofstream(plugin.file("other.hpp")) << "int three = 3;\n";
  CHECK(source_version(made_up, files) == before);
  for (const char* own : {"method.cpp", "own.hpp", "own.cpp"}) {
    CAPTURE(own);
    const std::string last = source_version(made_up, files);
    std::ofstream(plugin.file(own), std::ios::app) << "// an edit\n";
    CHECK(source_version(made_up, files) != last);
  }
  CHECK_THROWS_AS(source_version(made_up, {"/elsewhere/plugin.cpp"}), std::logic_error);
  CHECK_THROWS_AS(source_version(made_up, {"/elsewhere/not_approximations/a.cpp"}), std::logic_error);
}

TEST_CASE("a compiled plugin counts with every header, and a file of Python with what calls Python", "[unit]") {
  const PluginFiles plugin({{"plugin.so",
                             "\x7f"
                             "ELF"},
                            {"plugin.py", "import numpy\n"}});
  CHECK(deciding_sources(made_up, {plugin.file("plugin.so")}) ==
        Names{"approximations/engine.cpp", "approximations/engine.hpp", "harness/core.hpp", "harness/inner.hpp",
              "harness/store.cpp", "harness/store.hpp"});
  CHECK(deciding_sources(made_up, {plugin.file("plugin.py")}) == Names{"harness/core.hpp", "harness/python/calls.cpp"});
}

// The numbers of a cell come from the object files that its entries are in, and from those which these need. The
// dependencies between object files are the linker's, and know nothing of includes: when a header's definitions move to
// a file of another name, its sources stop counting, and this test fails.
namespace {

// The paths of sources by the symbols that their object files define, and the symbols that these leave undefined.
struct Objects {
  std::map<std::string, Names> needs, defined_in;
};

Objects objects_of_this_build() {
  const fs::path build = fs::path(ATTNBENCH_PROGRAM).parent_path() / "CMakeFiles";
  Objects objects;
  for (const std::string part : {"numbers", "experiments", "runs"}) {
    const std::string folder = (build / ("attnbench_" + part + ".dir")).string();
    FILE* pipe = popen(("find '" + folder + "' -name '*.o' | xargs nm -A -P").c_str(), "r");
    REQUIRE(pipe);
    std::string text;
    std::array<char, 65536> buffer;
    while (const size_t count = fread(buffer.data(), 1, buffer.size(), pipe)) text.append(buffer.data(), count);
    REQUIRE(pclose(pipe) == 0);
    std::istringstream lines(text);
    for (std::string file, symbol, kind, rest; lines >> file >> symbol >> kind && std::getline(lines, rest);) {
      const std::string path = file.substr(folder.size() + 1, file.size() - folder.size() - sizeof(".o:") - 0);
      if (!sources().contains(path)) continue;  // left by an older build, of a source that has moved since
      if (kind == "U") objects.needs[path].insert(symbol);
      if (kind == "T" || kind == "D" || kind == "B" || kind == "R") objects.defined_in[symbol].insert(path);
    }
  }
  return objects;
}

Names linked_with(const Objects& objects, const std::string& source) {
  Names found;
  std::vector<std::string> next{source};
  while (!next.empty()) {
    const std::string path = next.back();
    next.pop_back();
    if (!found.insert(path).second) continue;
    const auto needs = objects.needs.find(path);
    if (needs == objects.needs.end()) continue;
    for (const std::string& symbol : needs->second)
      if (const auto where = objects.defined_in.find(symbol); where != objects.defined_in.end())
        next.insert(next.end(), where->second.begin(), where->second.end());
  }
  return found;
}

// The files of this build that register what cells are made of.
Names registering_sources() {
  Names files;
  for (const auto& [plural, entries] : catalogues())
    if (plural == "methods" || plural == "features" || plural == "deterministic-features" || plural == "projections" ||
        plural == "inputs" || plural == "experiments")
      for (const std::string& name : entries->names())
        for (const std::string& file : entries->source_files(name))
          if (const size_t root = file.find(ATTNBENCH_SOURCE_DIR); root == 0)
            if (const std::string path = file.substr(sizeof(ATTNBENCH_SOURCE_DIR)); sources().contains(path))
              files.insert(path);
  return files;
}

}  // namespace

// Only in builds of the preset dev, which compiles each of these files into an object of its own
// (scripts/full_gate.sh).
TEST_CASE("every source that the linker needs for a cell goes stale with it", "[build]") {
  const Objects objects = objects_of_this_build();
  const Names registering = registering_sources();
  REQUIRE(registering.size() > 90);
  std::map<std::string, std::string> missing;  // source -> one of those that need it
  size_t needed = 0;
  for (const std::string& file : registering) {
    const Names linked = linked_with(objects, file), counted = deciding_sources(sources(), {file});
    CHECK(linked.contains(file));
    needed += linked.size();
    for (const std::string& path : linked)
      if (!counted.contains(path)) missing.emplace(path, file);
  }
  CHECK(needed > 5 * registering.size());
  std::string words;
  for (const auto& [path, file] : missing) words += path + " is needed by " + file + "\n";
  CHECK(words == "");
}

TEST_CASE("a change of one source makes those cells stale that it decides, and no others", "[unit]") {
  const auto cell = [](const std::string& experiment, const std::string& method, const std::string& input) {
    return Cell{{"experiments", experiment}, {"methods", method}, {"inputs", input}, {}};
  };
  const std::vector<std::string> parts[] = {cell("rank", "linear", "gaussian").experiment.source_files(),
                                            cell("rank", "performer", "gaussian").method.source_files(),
                                            cell("rank", "nystrom", "gaussian").method.source_files(),
                                            cell("rank", "linear", "gaussian").input.source_files()};
  std::vector<Names> stale_by(std::size(parts));
  for (size_t i = 0; i < std::size(parts); ++i) {
    const std::string before = source_version(sources(), parts[i]);
    for (const auto& [path, source] : sources()) {
      Sources edited = sources();
      edited[path].hash = "edited";
      if (source_version(edited, parts[i]) != before) stale_by[i].insert(path);
    }
  }
  const auto& [rank, performer, nystrom, gaussian] = std::tie(stale_by[0], stale_by[1], stale_by[2], stale_by[3]);
  for (const char* path :
       {"experiments/rank.cpp", "experiments/rank_records.cpp", "experiments/rank_records.hpp",
        "harness/experiment/cell.cpp", "harness/experiment/exact.cpp", "harness/measures/spectrum.cpp"}) {
    CAPTURE(path);
    CHECK(rank.contains(path));
    CHECK_FALSE(performer.contains(path));
  }
  CHECK(performer.contains("approximations/linear/performer.cpp"));
  CHECK(performer.contains("approximations/linear/linear_attention.cpp"));
  CHECK(performer.contains("approximations/linear/features/positive.cpp"));
  CHECK_FALSE(performer.contains("approximations/linear/features/trigonometric.cpp"));
  CHECK_FALSE(nystrom.contains("approximations/linear/performer.cpp"));
  CHECK(nystrom.contains("approximations/low-rank/pseudo_inverse.cpp"));
  CHECK(gaussian.contains("harness/inputs/laws/gaussian.cpp"));
  CHECK_FALSE(gaussian.contains("harness/inputs/laws/sphere.cpp"));
  for (const Names& stale : stale_by)
    for (const char* path : {"harness/store/store.cpp", "harness/cli/main.cpp", "harness/workers/pool.cpp"}) {
      CAPTURE(path);
      CHECK_FALSE(stale.contains(path));
    }
}

TEST_CASE("exact attention decides every cell, and the order of turns those that are timed", "[unit]") {
  const Cell cell{{"experiments", "rank"}, {"methods", "linear"}, {"inputs", "gaussian"}, {}};
  const auto version = [&](bool timing) { return row_of(cell, timing).source_version; };
  CHECK(version(true) != version(false));
  auto files = cell.method.source_files();
  for (const Params& part : {cell.experiment, cell.input})
    for (const std::string& file : part.source_files()) files.push_back(file);
  CHECK(version(false) != source_version(files));
  for (const std::string& file : Params("methods", "softmax").source_files()) files.push_back(file);
  CHECK(version(false) == source_version(files));
}

}  // namespace attnbench
