// --plugin and --python, which every command takes.
#pragma once

#include <string>
#include <vector>

#include "harness/cli/command.hpp"

namespace attnbench {

// Those two options, for --help.
options::options_description plugin_options();

// Takes them out of a command line and leaves them to this process and its workers (harness/plugins). Whether there are
// plugins, from here or from the environment. Throws Misuse.
bool take_plugins(std::vector<std::string>& words);

// A command in a process that has the plugins, with this one's input and output; its exit code. Throws
// std::runtime_error when it dies.
int run_in_worker(const std::vector<std::string>& words);

}  // namespace attnbench
