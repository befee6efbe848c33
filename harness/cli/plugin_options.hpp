// --plugin and --python, the options of every command.
#pragma once

#include <string>
#include <vector>

#include "harness/cli/command.hpp"

namespace attnbench {

// Describes these two options for --help.
options::options_description plugin_options();

// Removes them from a command line and sets the plugins of this process and its workers (harness/plugins). Returns
// whether there are plugins, from the command line or from the environment. Throws Misuse.
bool take_plugins(std::vector<std::string>& words);

// Runs a command in a process that has loaded the plugins, with this process's input and output, and returns its exit
// code. Throws std::runtime_error when the process dies.
int run_in_worker(const std::vector<std::string>& words);

}  // namespace attnbench
