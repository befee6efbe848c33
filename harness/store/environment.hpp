// Where and how a run is made.
#pragma once

#include <string>
#include <vector>

namespace attnbench {

// A JSON object: git commit and whether the tree was clean, compiler, flags and build type, CPU model and caches, cores
// allowed, memory, library versions, host system, load average. Facts that cannot be had are left out.
std::string environment_json();

// The machine that an environment describes, or this one: host, processor and its cores. What is timed is compared on
// one machine only. "unknown machine" when nothing is known.
std::string machine_of(const std::string& environment);
const std::string& this_machine();

// Bytes of memory this process could still get: available memory of the machine, or the control group's if less.
double available_memory();
// All that this process could have were nothing else running: of the machine, or the control group's if less.
double total_memory();

// Cores that this process may run on: its affinity, and no more than Slurm grants a task (SLURM_CPUS_PER_TASK).
int allowed_cores();

// Hash of the sources that decide the numbers of a cell: the harness (less command line, runner and store), the engines
// of the approximations, and the given files (of the method, its parts, the input and the experiment).
std::string source_version(const std::vector<std::string>& files);

}  // namespace attnbench
