// Describes where and how a run is made.
#pragma once

#include <string>
#include <vector>

namespace attnbench {

// A JSON object: git commit and whether the tree was clean, compiler, flags, build type and instructions, CPU model and
// caches, allowed cores, memory, library versions, host system, load average. python: the interpreter that runs
// plugins, whose version and packages are added. Leaves out facts that the system does not give.
std::string environment_json(const std::string& python = "");

// Host, processor, its cores, and the instructions that the library uses. Timings are compared on one machine only.
const std::string& this_machine();

// source_version (harness/store/source_version.hpp) of this build's sources.
std::string source_version(const std::vector<std::string>& files, const std::vector<std::string>& alone = {});

}  // namespace attnbench
