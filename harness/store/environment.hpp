// Where and how a run is made.
#pragma once

#include <string>
#include <vector>

namespace attnbench {

// A JSON object: git commit and whether the tree was clean, compiler, flags and build type, CPU model and caches, cores
// allowed, memory, library versions, host system, load average. Facts that cannot be had are left out.
std::string environment_json();

// Host, processor and its cores: what is timed is compared on one machine only.
const std::string& this_machine();

// source_version (harness/store/source_version.hpp) of this build's sources.
std::string source_version(const std::vector<std::string>& files, const std::vector<std::string>& alone = {});

}  // namespace attnbench
