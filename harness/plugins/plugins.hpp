// Plugins: files outside the program that register methods, feature maps, projections, inputs and experiments. They are
// shared libraries (.so) or Python files (.py). Only workers load them, so a plugin that breaks something costs a cell.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace attnbench {

struct Plugins {
  std::vector<std::filesystem::path> files;
  std::string python;  // runs the Python plugins, and is the process that loads them
};

// The plugins of this process. It shares them with its workers through the environment: ATTNBENCH_PLUGINS (separated by
// colons) and ATTNBENCH_PYTHON.
Plugins plugins();
// The interpreter if any plugin is in Python, otherwise empty.
std::string python_of_plugins();
// Stores them in the environment. Throws Misuse for a file that does not exist or is neither .so nor .py, and for an
// interpreter that cannot be found.
void set_plugins(const Plugins& plugins);

// The files beside plugins that go with them, sorted: beside mine.so or mine.py the file mine.bib; and the recipe files
// mine.recipe.json and mine.ANYTHING.recipe.json.
std::vector<std::filesystem::path> bibliographies_of_plugins();
std::vector<std::filesystem::path> recipes_of_plugins();

// The command that starts a worker able to load them: this program or the interpreter, with its arguments.
std::vector<std::string> worker_command();
// Makes every worker run in that interpreter, with or without plugins: this program is a Python module.
void run_workers_by(const std::string& interpreter);

// An entry that a plugin registered.
struct PluginEntry {
  std::string plural, name;
  std::filesystem::path file;
};

// Loads the plugins into this process. Throws Misuse, which names the file, for a plugin that is not one, was built for
// another program, throws, registers nothing, registers a name that is taken, or registers an incomplete entry.
std::vector<PluginEntry> load_plugins();
// Loads one more plugin into a process that is not a worker. A crash then ends that process.
std::vector<PluginEntry> load_plugin(const std::filesystem::path& file);
// Sets how .py files are loaded. Without it this process is not Python and cannot load them.
void set_python_loader(std::function<void(const std::filesystem::path&)> load);

}  // namespace attnbench
