// Everything that the numbers of a results file give reason to cite.
#pragma once

#include <filesystem>
#include <set>
#include <string>

namespace attnbench {

struct Citable {
  std::set<std::string> methods;  // canonical specs
  std::set<std::string> sources;  // of verdicts
};

// results: an existing file.
Citable citable(const std::filesystem::path& results);

}  // namespace attnbench
