#include "harness/plugins/plugins.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "harness/core/installed.hpp"
#include "harness/errors/error.hpp"
#include "harness/experiment/cell.hpp"

namespace attnbench {

namespace fs = std::filesystem;

namespace {

constexpr const char* files_variable = "ATTNBENCH_PLUGINS";
constexpr const char* python_variable = "ATTNBENCH_PYTHON";

std::string interpreter;  // set by run_workers_by

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::vector<std::string> split(const std::string& paths) {
  std::vector<std::string> all;
  std::istringstream stream(paths);
  for (std::string path; std::getline(stream, path, ':');)
    if (!path.empty()) all.push_back(path);
  return all;
}

bool is_identifier(std::string_view word) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !word.empty() && letter(word.front()) &&
         std::all_of(word.begin(), word.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

// "package.module", which is neither mine.py nor mine.so.
bool is_module(const std::string& name) {
  if (name.ends_with(".py") || name.ends_with(".so") || name.ends_with('.')) return false;
  std::istringstream stream(name);
  for (std::string word; std::getline(stream, word, '.');)
    if (!is_identifier(word)) return false;
  return !name.empty();
}

// "package.module:Class"
bool is_class(const std::string& plugin) {
  const size_t colon = plugin.find(':');
  return colon != std::string::npos && is_module(plugin.substr(0, colon)) && is_identifier(plugin.substr(colon + 1));
}

// The colon of a class also separates plugins. A path that could be a module begins with ./ or is absolute.
std::vector<fs::path> split_plugins(const std::string& text) {
  std::vector<fs::path> all;
  for (const auto& part : split(text)) {
    const bool joins = !all.empty() && is_module(all.back().string()) && is_identifier(part);
    if (joins)
      all.back() = all.back().string() + ":" + part;
    else
      all.emplace_back(part);
  }
  return all;
}

// The plugin's path without links and dots. It is hashed and shown in this form.
fs::path required_file(const fs::path& file) {
  std::error_code problem;
  const fs::path found = fs::canonical(file, problem);
  const bool package = fs::is_directory(found, problem);
  if (!package && file.extension() != ".so" && file.extension() != ".py")
    throw Misuse(
        fmt::format("--plugin {}: expected a shared library (.so), a Python file (.py), a folder of them, or a class "
                    "that Python can import (package.module:Class)",
                    file.string()));
  if (!package && !fs::is_regular_file(found, problem))
    throw Misuse(fmt::format("--plugin {}: there is no such file", file.string()));
  if (found.string().find(':') != std::string::npos)
    throw Misuse(
        fmt::format("--plugin {}: its path contains a colon, which separates plugins; move it", found.string()));
  return found;
}

// The plugins that one word of the command line stands for.
std::vector<fs::path> required_plugins(const fs::path& given) {
  if (is_class(given.string())) return {given};
  const fs::path found = required_file(given);
  if (!fs::is_directory(found) || fs::exists(found / "__init__.py")) return {found};
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(found)) {
    const std::string name = entry.path().filename().string();
    const bool ends_as_plugin = name.ends_with(".py") || name.ends_with(".so");
    if (ends_as_plugin && !name.starts_with('_') && !name.starts_with('.'))
      files.push_back(required_file(entry.path()));
  }
  if (files.empty())
    throw Misuse(
        fmt::format("--plugin {}: the folder has no __init__.py, and no .py or .so file whose name begins without _",
                    given.string()));
  std::sort(files.begin(), files.end());
  return files;
}

bool is_program(const fs::path& file) {
  std::error_code none;
  return access(file.c_str(), X_OK) == 0 && fs::is_regular_file(file, none);
}

// The path of the interpreter. Searches PATH for a name without a folder, as a shell does.
std::string required_interpreter(const std::string& python) {
  if (python.find('/') != std::string::npos) {
    if (is_program(python)) return fs::absolute(python).string();
  } else {
    for (const fs::path folder : split(variable("PATH")))
      if (is_program(folder / python)) return (folder / python).string();
  }
  throw Misuse(
      fmt::format("--python {}: there is no such program; expected a Python interpreter, such as "
                  "venv/bin/python",
                  python));
}

bool in_python(const PluginFiles& files) { return std::any_of(files.begin(), files.end(), is_python); }

std::string joined(const PluginFiles& files) {
  std::string all;
  for (const fs::path& file : files) all += (all.empty() ? "" : ":") + file.string();
  return all;
}

// Whether a source file is the plugin's: the file itself, one of its package, or the module of its class.
bool has_source(const fs::path& plugin, const std::string& source) {
  const std::string name = plugin.string();
  if (source == name || source.starts_with(name + "/")) return true;
  if (!is_class(name)) return false;
  std::string module = "/" + name.substr(0, name.find(':'));
  std::replace(module.begin(), module.end(), '.', '/');
  return source.ends_with(module + ".py") || source.ends_with(module + "/__init__.py");
}

// The files beside the plugins whose names agree. matches: receives the name of a file and that of a plugin without
// its ending.
std::vector<fs::path> beside_plugins(bool (*matches)(const std::string& name, const std::string& plugin)) {
  std::vector<fs::path> all;
  std::error_code none;
  for (const fs::path& plugin : plugins().files)
    for (const auto& beside : fs::directory_iterator(plugin.parent_path(), none))
      if (matches(beside.path().filename().string(), plugin.stem().string()) && beside.is_regular_file(none))
        all.push_back(beside.path());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

// Tells the interpreter where attnbench.worker is, and to hash texts alike in each process: a draw that depends on a
// text's hash would be another one in each worker.
void prepare_interpreter() {
  setenv("PYTHONHASHSEED", "0", 0);
  const std::string package = python_path().string(), path = variable("PYTHONPATH");
  if (!package.empty() && path != package && !path.starts_with(package + ":"))
    setenv("PYTHONPATH", (path.empty() ? package : package + ":" + path).c_str(), 1);
}

}  // namespace

Plugins plugins() {
  Plugins all{.files = split_plugins(variable(files_variable)), .python = variable(python_variable)};
  if (all.python.empty()) all.python = own_python();
  return all;
}

bool is_python(const fs::path& plugin) { return plugin.extension() != ".so"; }

std::vector<fs::path> bibliographies_of_plugins() {
  return beside_plugins([](const std::string& name, const std::string& plugin) { return name == plugin + ".bib"; });
}

std::vector<fs::path> recipes_of_plugins() {
  return beside_plugins([](const std::string& name, const std::string& plugin) {
    return name.starts_with(plugin + ".") && (name.ends_with(".recipe.toml") || name.ends_with(".recipe.json"));
  });
}

std::string python_of_plugins() {
  const auto [files, python] = plugins();
  return in_python(files) ? python : "";
}

void set_plugins(const Plugins& plugins) {
  PluginFiles files;
  for (const fs::path& given : plugins.files)
    for (const fs::path& plugin : required_plugins(given))
      if (std::find(files.begin(), files.end(), plugin) == files.end()) files.push_back(plugin);
  setenv(files_variable, joined(files).c_str(), 1);
  // A peer in Python runs in the interpreter that is asked for, whether or not a plugin does.
  if (plugins.python != attnbench::plugins().python)
    setenv(python_variable, required_interpreter(plugins.python).c_str(), 1);
  if (!in_python(files)) return;
  if (!python_path().empty() && !fs::exists(python_path() / "attnbench"))
    throw Misuse(fmt::format(
        "--plugin {}: this program was built without its Python package ({} is not there); build it with "
        "scripts/build.sh release",
        std::find_if(files.begin(), files.end(), is_python)->string(), (python_path() / "attnbench").string()));
  setenv(python_variable, required_interpreter(plugins.python).c_str(), 1);
  prepare_interpreter();
}

PluginFiles plugins_among(const std::vector<std::string>& source_files) {
  PluginFiles files = plugins().files;
  std::erase_if(files, [&](const fs::path& file) {
    return std::none_of(source_files.begin(), source_files.end(),
                        [&](const std::string& source) { return has_source(file, source); });
  });
  return files;
}

PluginFiles plugins_of(const Cell& cell) {
  if (variable(files_variable).empty()) return {};  // most runs, of which some have a million cells
  std::vector<std::string> sources;
  for (const Params* part : {&cell.experiment, &cell.method, &cell.input})
    for (std::string& file : part->source_files()) sources.push_back(std::move(file));
  return plugins_among(sources);
}

std::vector<std::string> worker_command(const PluginFiles& files) {
  const std::string python = !interpreter.empty() ? interpreter : in_python(files) ? plugins().python : "";
  if (python.empty()) return {"/proc/self/exe", "worker"};
  return {python, "-m", "attnbench.worker"};
}

std::string worker_variable(const PluginFiles& files) { return fmt::format("{}={}", files_variable, joined(files)); }

void run_workers_by(const std::string& python) {
  interpreter = python;
  prepare_interpreter();
}

}  // namespace attnbench
