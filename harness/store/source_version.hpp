// Which sources decide the numbers of a cell. Another method's file is not among them, so adding one re-runs nothing.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "harness/store/build_facts.hpp"

namespace attnbench {

// The project's files that decide what `files` compute: those among `files`, all that they include, and with each
// header the .cpp beside it of the same name. `files` may be absolute or relative to anywhere, as __FILE__ gives them.
// Files that are not among `sources` count by what they include now. A compiled plugin does not say what it includes:
// every header counts. For a Python file what calls Python counts.
std::set<std::string> deciding_sources(const Sources& sources, const std::vector<std::string>& files);

// 16 hexadecimal digits over the paths and hashes of deciding_sources, and of `alone`, which count without what they
// include; and over the content that files from outside the project have now, with the headers beside them that they
// include. Throws std::logic_error for a file that cannot be read.
std::string source_version(const Sources& sources, const std::vector<std::string>& files,
                           const std::vector<std::string>& alone = {});

}  // namespace attnbench
