// The whole program: main calls it, and so does Python if a worker is an interpreter.
#pragma once

#include <string>
#include <vector>

namespace attnbench {

// Dispatches to the commands. Exit codes: 0 done, 1 negative result, 2 misuse, 3 undecided.
int run_program(int argc, char** argv);
// Runs one command in a process that has loaded its plugins itself. Throws errors, which run_program prints.
int run_command_line(const std::vector<std::string>& words);

}  // namespace attnbench
