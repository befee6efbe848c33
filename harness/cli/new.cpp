// attnbench new: writes a file to start from, which compiles, is registered, and asks the questions that its header
// answers.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <regex>
#include <sstream>

#include "harness/cli/command.hpp"
#include "harness/cli/recipe_file.hpp"
#include "harness/core/file_bytes.hpp"
#include "harness/core/installed.hpp"

namespace attnbench::new_command {
namespace {

namespace fs = std::filesystem;

struct Kind {
  const char* name;
  std::vector<const char*> plurals;  // catalogues in which the name must be free
  const char* folder;                // in the source tree; empty for methods, whose families have folders
  const char* next;                  // the command that shows that it works; {} is the name
  bool plugin = true;                // whether plugins can contain it
  bool in_python = false;            // whether there is a template of a class in Python
};

struct Family {
  const char *name, *folder;
};
constexpr std::array<Family, 7> families{{{"linear", "approximations/linear"},
                                          {"logits", "approximations/softmax"},
                                          {"recurrence", "approximations/recurrences"},
                                          {"low-rank", "approximations/low-rank"},
                                          {"codebook", "approximations/codebook"},
                                          {"sparse", "approximations/sparse"},
                                          {"mixer", "approximations/mixers"}}};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      {"method", {"methods"}, "", "check {}", true, true},
      {"feature-map", {"deterministic-features"}, "approximations/linear/features", "check linear:features={}"},
      {"projection", {"projections"}, "approximations/linear/projections", "check performer:projection={}"},
      {"input", {"inputs"}, "harness/inputs/laws", "run attention-error --method performer --input {}", true, true},
      {"experiment", {"experiments"}, "experiments", "run {} --method performer --method softmax", true, true},
      {"recipe", {"recipes"}, "experiments/recipes", "reproduce {} --smoke", false}};  // in C++
  return all;
}

const Kind& kind_of(const std::string& word) {
  std::vector<std::string> known;
  for (const Kind& kind : kinds()) {
    if (kind.name == word) return kind;
    known.emplace_back(kind.name);
  }
  throw Misuse(fmt::format("new: '{}' is not a kind of file{}", word, nearest_names(word, known)));
}

const Family& family_of(const std::string& word) {
  std::vector<std::string> known;
  for (const Family& family : families) {
    if (family.name == word) return family;
    known.emplace_back(family.name);
  }
  if (word.empty())
    throw Misuse(
        "new method: --family is missing; expected linear, logits (softmax of other logits), recurrence (with a "
        "decoder), low-rank, codebook, sparse or mixer, or --python");
  throw Misuse(fmt::format("new method: --family {}: there is no such family{}", word, nearest_names(word, known)));
}

void require_free_name(const Kind& kind, const std::string& name) {
  if (!std::regex_match(name, std::regex("[a-z][a-z0-9]*(-[a-z0-9]+)*")))
    throw Misuse(fmt::format(
        "new {}: '{}' is not a name; expected words of small letters and digits, joined by hyphens, such as "
        "my-{}",
        kind.name, name, kind.name));
  for (const char* plural : kind.plurals) {
    const auto names = catalogue(plural).names();
    if (std::find(names.begin(), names.end(), name) != names.end())
      throw Misuse(fmt::format("new {}: the name '{}' is taken by {}; give another", kind.name, name,
                               catalogue(plural).source_files(name).front()));
  }
}

// "my-map" becomes "MyMap".
std::string class_name(const std::string& name) {
  std::string words;
  bool first = true;
  for (const char c : name) {
    if (c != '-') words += first ? static_cast<char>(std::toupper(c)) : c;
    first = c == '-';
  }
  return words;
}

std::string replaced(std::string text, const std::string& word, const std::string& by) {
  for (size_t place = 0; (place = text.find(word, place)) != std::string::npos; place += by.size())
    text.replace(place, word.size(), by);
  return text;
}

std::string text_of(const fs::path& path) {
  if (auto text = file_bytes(path)) return std::move(*text);
  throw Misuse(fmt::format("new: the template {} is not there; expected the source tree that this was built from",
                           path.string()));
}

void write_new_file(const fs::path& path, const std::string& text) {
  std::error_code problem;
  fs::create_directories(path.parent_path(), problem);
  if (fs::exists(path)) throw Misuse(fmt::format("new: {} is there already and is left as it is", path.string()));
  std::ofstream file(path);
  if (!(file << text << std::flush))
    throw Misuse(fmt::format("new: {} cannot be written; give another folder with -o", path.string()));
}

// Writes beside the file the CMakeLists.txt that builds it as a plugin. One that is there already is left as it is, and
// the lines that it takes are printed.
void write_lists(const fs::path& path) {
  const fs::path lists = path.parent_path() / "CMakeLists.txt";
  const std::string text =
      replaced(text_of(source_tree() / "harness/cli/templates/CMakeLists.txt.in"), "@FILE@", path.filename().string());
  if (!fs::exists(lists)) {
    write_new_file(lists, text);
    std::cout << lists.string() << "\n";
    return;
  }
  std::cout << fmt::format("{} is there already; for this file it takes:\n", lists.string());
  std::istringstream lines(text.substr(text.find("find_package")));
  for (std::string line; std::getline(lines, line);) std::cout << "  " << line << "\n";
}

// The commands that build the plugin of this folder and run the next one with it.
std::string build_commands(const fs::path& folder, const std::string& next) {
  const std::string build = (folder / "build").lexically_normal().string();
  return fmt::format("  cmake {}-B {} -G Ninja && cmake --build {}\n  attnbench {} --plugin {}/libmine.so\n",
                     build == "build" ? "" : fmt::format("-S {} ", folder.string()), build, build, next, build);
}

// Writes mine.recipe.json as mine.recipe.toml beside it.
int convert(const std::string& kind, const std::string& name, const std::string& json) {
  if (kind != "recipe" || !name.empty())
    throw Misuse("new: --from is of recipes, whose names are in the file; such as: attnbench new recipe --from " +
                 json);
  const fs::path path = fs::path(json).replace_extension(".toml");
  write_new_file(path, recipe_in_toml(json));
  std::cout << path.string() << "\n";
  return 0;
}

int run(const std::vector<std::string>& arguments) {
  std::string word, name, family, output, json;
  bool python = false, cpp = false;
  options::options_description visible("options");
  visible.add_options()("kind", options::value(&word), "method, feature-map, projection, input, experiment or recipe")(
      "name", options::value(&name), "its name in specs, such as my-method")(
      "family", options::value(&family)->value_name("FAMILY"),
      "of a method: linear, logits, recurrence, low-rank, codebook, sparse or mixer")(
      "python", options::bool_switch(&python), "of a method, an input or an experiment: a class in Python")(
      "cpp", options::bool_switch(&cpp), "of a recipe: a C++ file of the source tree, for numbers that need code")(
      "from", options::value(&json)->value_name("FILE.json"),
      "of a recipe: writes this recipe file of an earlier version in TOML")(
      "output,o", options::value(&output)->value_name("FOLDER"), "[where such files are in the source tree]");
  if (!parse_arguments("new", visible, arguments, {{"kind", 1}, {"name", 1}})) return 0;
  if (!json.empty()) return convert(word, name, json);
  if (name.empty()) throw Misuse("new: expected a kind and a name, such as: attnbench new feature-map my-map");
  const Kind& kind = kind_of(word);
  const bool method = kind.name == std::string("method");
  if (!method && !family.empty()) throw Misuse(fmt::format("new {}: --family is of methods; leave it out", word));
  if (python && (!kind.in_python || !family.empty()))
    throw Misuse(
        "new: --python is of methods, inputs and experiments, and has no --family; such as: attnbench new method "
        "my-method --python");
  const bool recipe = kind.name == std::string("recipe"), toml = recipe && !cpp;
  if (cpp && !recipe) throw Misuse(fmt::format("new {}: --cpp is of recipes; leave it out", word));
  const std::string folder = method && !python ? family_of(family).folder : kind.folder;
  require_free_name(kind, name);
  // Classes in Python and recipe files belong to no source tree: they are written to the folder where the user is.
  const fs::path place = !output.empty() ? fs::path(output) : python || toml ? fs::path(".") : source_tree() / folder;
  const fs::path path = place / (toml ? name + ".recipe.toml" : replaced(name, "-", "_") + (python ? ".py" : ".cpp"));
  const std::string file = python   ? word + ".py.in"
                           : toml   ? word + ".toml.in"
                           : method ? fmt::format("method.{}.cpp.in", family)
                                    : word + ".cpp.in";
  const std::string text = text_of(source_tree() / "harness/cli/templates" / file);
  write_new_file(path, replaced(replaced(text, "@NAME@", name), "@CLASS@", class_name(name)));
  const std::string next = fmt::format(fmt::runtime(kind.next), toml ? path.string() : name);
  if (toml) {
    std::cout << fmt::format("{}\nIt runs already; answer its TODOs. Then:\n  attnbench {}\n", path.string(), next);
    return 0;
  }
  if (python) {
    std::cout << fmt::format("{}\nIt works already; answer its TODOs. Then:\n  attnbench {} --plugin {}\n",
                             path.string(), next, path.string());
    return 0;
  }
  std::cout << path.string() << "\n";
  if (!output.empty() && kind.plugin) write_lists(path);
  std::cout << "It compiles and is registered already; answer its TODOs. Then:\n";
  if (!kind.plugin && !output.empty())
    std::cout << "  mv " << path.string() << " " << (source_tree() / folder).string() << "\n";
  if (output.empty() || !kind.plugin) {
    std::cout << "  scripts/build.sh release attnbench\n  build/release/attnbench " << next << "\n";
  } else {
    std::cout << build_commands(place, next);
  }
  if (method && output.empty())
    std::cout << "and a plain transcription of its formula as a file of tests/oracle/ (CONTRIBUTING.md)\n";
  return 0;
}

const bool registered =
    add(CommandEntry{.text = {.name = "new",
                              .summary = "write a file to start from: a method, a feature map, an input, a recipe ...",
                              .formula = "new KIND NAME [--family FAMILY] [-o FOLDER] | new recipe --from FILE.json"},
                     .run = run,
                     .examples = {"new method my-method --family sparse", "new feature-map my-map -o .",
                                  "new method my-method --python", "new recipe my-paper"}});

}  // namespace
}  // namespace attnbench::new_command
