// The columns of a cell in a results file.
#pragma once

#include <cstdint>
#include <string>

#include "harness/core/problem.hpp"

namespace attnbench {

// The columns that identify a cell and that readers select by. key is the hash of everything that the numbers depend
// on.
struct CellRow {
  std::string key;
  std::string experiment;  // canonical spec with its options, e.g. "kernel-error:draws=4096"
  std::string method;      // canonical spec
  std::string input;       // canonical spec
  Shape shape;
  Index heads = 1;
  double logit_scale = 1;
  std::uint64_t seed = 0;
  int threads = 0;         // 0: not part of the cell (statistics)
  std::string parameters;  // JSON object: every parameter of method, input and experiment with its value
  std::string source_version;
  std::string machine = {};  // where it was timed: timings on two machines are two cells; empty for statistics
};

// The key of a timing cell on one machine: the hash of all its other fields, and that of the machine.
std::string key_on(const std::string& key, const std::string& machine);

}  // namespace attnbench
