// Plugins: files outside the program that register methods, feature maps, projections, inputs and experiments. Shared
// libraries (.so) and Python (.py). They are loaded by workers alone: what they break there costs a cell.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace attnbench {

struct Plugins {
  std::vector<std::filesystem::path> files;
  std::string python;  // interpreter of those in Python, and of the process that loads them
};

// Of this process, from the environment that it shares with its workers: ATTNBENCH_PLUGINS (separated by colons) and
// ATTNBENCH_PYTHON.
Plugins plugins();
// The interpreter, when a plugin is in Python; empty otherwise.
std::string python_of_plugins();
// Puts them there. Throws Misuse for a file that is not there or is neither .so nor .py, and for an interpreter that
// cannot be found.
void set_plugins(const Plugins& plugins);

// The command that starts a worker which can load them, without its arguments: this program, or the interpreter.
std::vector<std::string> worker_command();
// Makes that interpreter the worker's, plugins or not: this program is a module of it.
void run_workers_by(const std::string& interpreter);

// An entry that came with a plugin.
struct PluginEntry {
  std::string plural, name;
  std::filesystem::path file;
};

// Loads them into this process. Throws Misuse, with the file, for one that is no plugin, was built for another program,
// throws, registers nothing, a name that is taken, or what cannot be used.
std::vector<PluginEntry> load_plugins();
// One more, in a process that is no worker and takes its chances.
std::vector<PluginEntry> load_plugin(const std::filesystem::path& file);
// How .py files are loaded; none: this process is no Python.
void set_python_loader(std::function<void(const std::filesystem::path&)> load);

}  // namespace attnbench
