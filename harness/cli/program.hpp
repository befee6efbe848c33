// The whole program: what main calls, and what Python calls where a worker is an interpreter.
#pragma once

#include <string>
#include <vector>

namespace attnbench {

// Dispatches to the commands. Exit codes: 0; 1 negative result; 2 misuse; 3 undecided.
int run_program(int argc, char** argv);
// One command in a process that has loaded its plugins itself. Throws what goes wrong, where run_program prints it.
int run_command(const std::vector<std::string>& words);

}  // namespace attnbench
