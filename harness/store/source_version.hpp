// Determines which sources decide the numbers of a cell. Another method's file is not among them, so adding one re-runs
// nothing.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "harness/store/build_facts.hpp"

namespace attnbench {

// The project's files that decide what `files` compute: those among `files`, everything that they include, and for each
// header the .cpp of the same name beside it. `files` may be absolute or relative to any folder, as __FILE__ gives
// them. Files that are not in `sources` count through their present includes. A compiled plugin does not tell its
// includes, so every header counts. For a Python file, the code that calls Python counts.
std::set<std::string> deciding_sources(const Sources& sources, const std::vector<std::string>& files);

// 16 hexadecimal digits. They hash the paths and hashes of deciding_sources and of `alone`, whose includes do not
// count. They also hash the present content of files outside the project, with the headers beside them that these
// include. Throws std::logic_error for a file that cannot be read.
std::string source_version(const Sources& sources, const std::vector<std::string>& files,
                           const std::vector<std::string>& alone = {});

}  // namespace attnbench
