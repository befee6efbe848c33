#include "harness/plugins/plugins.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "harness/core/installed.hpp"
#include "harness/errors/error.hpp"

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

std::vector<fs::path> split(const std::string& paths) {
  std::vector<fs::path> all;
  std::istringstream stream(paths);
  for (std::string path; std::getline(stream, path, ':');)
    if (!path.empty()) all.emplace_back(path);
  return all;
}

// The plugin's path without links and dots. It is hashed and shown in this form.
fs::path required_file(const fs::path& file) {
  if (file.extension() != ".so" && file.extension() != ".py")
    throw Misuse(fmt::format("--plugin {}: expected a shared library (.so) or a Python file (.py)", file.string()));
  std::error_code problem;
  const fs::path found = fs::canonical(file, problem);
  if (problem || !fs::is_regular_file(found))
    throw Misuse(fmt::format("--plugin {}: there is no such file", file.string()));
  if (found.string().find(':') != std::string::npos)
    throw Misuse(
        fmt::format("--plugin {}: its path contains a colon, which separates plugins; move it", found.string()));
  return found;
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
    for (const auto& folder : split(variable("PATH")))
      if (is_program(folder / python)) return (folder / python).string();
  }
  throw Misuse(
      fmt::format("--python {}: there is no such program; expected a Python interpreter, such as "
                  "venv/bin/python",
                  python));
}

bool in_python(const Plugins& plugins) {
  return std::any_of(plugins.files.begin(), plugins.files.end(),
                     [](const fs::path& f) { return f.extension() == ".py"; });
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

// Tells the interpreter where attnbench.worker is.
void show_package() {
  const std::string package = (library_file().parent_path() / "python").string(), path = variable("PYTHONPATH");
  if (path != package && !path.starts_with(package + ":"))
    setenv("PYTHONPATH", (path.empty() ? package : package + ":" + path).c_str(), 1);
}

}  // namespace

Plugins plugins() {
  Plugins all{.files = split(variable(files_variable)), .python = variable(python_variable)};
  if (all.python.empty()) all.python = ATTNBENCH_PYTHON;
  return all;
}

std::vector<fs::path> bibliographies_of_plugins() {
  return beside_plugins([](const std::string& name, const std::string& plugin) { return name == plugin + ".bib"; });
}

std::vector<fs::path> recipes_of_plugins() {
  return beside_plugins([](const std::string& name, const std::string& plugin) {
    return name.starts_with(plugin + ".") && name.ends_with(".recipe.json");
  });
}

std::string python_of_plugins() {
  const auto [files, python] = plugins();
  const auto in_python = [](const fs::path& file) { return file.extension() == ".py"; };
  return std::any_of(files.begin(), files.end(), in_python) ? python : "";
}

void set_plugins(const Plugins& plugins) {
  std::vector<std::string> files;
  for (const fs::path& file : plugins.files) {
    const std::string found = required_file(file).string();
    if (std::find(files.begin(), files.end(), found) == files.end()) files.push_back(found);
  }
  setenv(files_variable, fmt::format("{}", fmt::join(files, ":")).c_str(), 1);
  if (!in_python(plugins)) return;
  setenv(python_variable, required_interpreter(plugins.python).c_str(), 1);
  show_package();
}

std::vector<std::string> worker_command() {
  const Plugins all = plugins();
  const std::string python = !interpreter.empty() ? interpreter : in_python(all) ? all.python : "";
  if (python.empty()) return {"/proc/self/exe", "worker"};
  return {python, "-m", "attnbench.worker"};
}

void run_workers_by(const std::string& python) {
  interpreter = python;
  show_package();
}

}  // namespace attnbench
