// Plugins: code outside the program that registers methods, feature maps, projections, inputs and experiments. Only
// workers load it, so a plugin that breaks something costs a cell. A plugin is
//   a shared library    mine.so
//   a Python file       mine.py
//   a Python package    a folder with __init__.py
//   a class             package.module:Class, which Python can import
// Another folder stands for the .so and .py files directly in it, without those whose names begin with _ or with a dot.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace attnbench {

struct Cell;

struct Plugins {
  std::vector<std::filesystem::path> files;  // or package.module:Class
  std::string python;                        // runs the Python plugins, and is the process that loads them
};

// The plugins of this process. It shares them with its workers through the environment: ATTNBENCH_PLUGINS (separated by
// colons) and ATTNBENCH_PYTHON.
Plugins plugins();
// The interpreter if any plugin is in Python, otherwise empty.
std::string python_of_plugins();
// Whether Python loads it. The alternative is a shared library.
bool is_python(const std::filesystem::path& plugin);
// Stores them in the environment, folders as the plugins in them. Throws Misuse for one that does not exist or is no
// plugin, for an interpreter that cannot be found, and for a program that was built without Python.
void set_plugins(const Plugins& plugins);

// The files beside plugins that go with them, sorted: beside mine.so or mine.py the file mine.bib; and the recipe files
// mine.recipe.json and mine.ANYTHING.recipe.json.
std::vector<std::filesystem::path> bibliographies_of_plugins();
std::vector<std::filesystem::path> recipes_of_plugins();

// The plugins whose code decides what a spec or a cell gives. source_files: of its entries (Params::source_files). A
// worker loads these and no others: code of one plugin then cannot change the numbers of another's methods, nor of
// built-in ones.
using PluginFiles = std::vector<std::filesystem::path>;
PluginFiles plugins_among(const std::vector<std::string>& source_files);
PluginFiles plugins_of(const Cell& cell);

// The command that starts a worker able to load those plugins: this program or the interpreter, with its arguments.
std::vector<std::string> worker_command(const PluginFiles& files);
// The variable of the environment that names them to the worker, as "NAME=value".
std::string worker_variable(const PluginFiles& files);
// Makes every worker run in that interpreter, with or without plugins: this program is a Python module.
void run_workers_by(const std::string& interpreter);

// An entry that a plugin registered.
struct PluginEntry {
  std::string plural, name;
  std::filesystem::path file;
};

// Says which name two entries have, after one was registered that had the name of another.
std::string taken_name();

// Loads the plugins into this process. Throws Misuse, which names the file, for a plugin that is not one, was built for
// another program, throws, registers nothing, registers a name that is taken, or registers an incomplete entry.
std::vector<PluginEntry> load_plugins();
// Loads one more plugin into a process that is not a worker. A crash then ends that process.
std::vector<PluginEntry> load_plugin(const std::filesystem::path& file);
// Sets how plugins in Python are loaded. Without it this process is not Python and cannot load them.
void set_python_loader(std::function<void(const std::filesystem::path&)> load);

}  // namespace attnbench
