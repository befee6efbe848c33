// The whole program: what main calls, and what Python calls where a worker is an interpreter.
#pragma once

namespace attnbench {

// Dispatches to the commands. Exit codes: 0; 1 negative result; 2 misuse; 3 undecided.
int run_program(int argc, char** argv);

}  // namespace attnbench
