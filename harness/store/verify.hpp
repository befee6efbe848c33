// Checks that a results file has everything that was recorded into it, as it was recorded.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/core/problem.hpp"

namespace attnbench {

struct Verification {
  Index runs = 0, cells = 0, replicates = 0, measurements = 0;
  std::map<std::string, Index> endings;  // replicates by how they ended
  std::vector<std::string> problems;     // empty: the file is whole; at most 20 of each kind
  // Not damage, but worth a look: replicates of one cell with different metrics (an experiment leaves out what it
  // cannot estimate).
  std::vector<std::string> remarks;
};

// Reads every byte. Checks pages and indexes (integrity_check), references, that every value has the type of its column
// and every text is UTF-8, that every digest is that of its rows, that every replicate has the measurements recorded in
// its transaction, that arrays have the bytes of their shape and no NaN, and that endings are known and have reasons.
// Throws Misuse when the path is not a results file; damage is reported as a problem.
Verification verify(const std::filesystem::path& path);

// Throws Misuse for a file in which verify would find a problem, with the first one.
void require_whole(const std::filesystem::path& path);

}  // namespace attnbench
