// Which sources decide the numbers of a cell. Another method's file is not among them, so adding one re-runs nothing.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace attnbench {

// 16 hexadecimal digits over the paths and hashes of: the harness less command line, store, the files that register
// inputs and most of the runner; the engines of the approximations (headers, and the .cpp beside a .hpp of the same
// name); and `files`, which may be absolute or relative to anywhere (as std::source_location gives them). hashes: as
// source_hashes(). A file that is not among them counts by what is in it now; throws std::logic_error when it cannot be
// read.
std::string source_version(const std::map<std::string, std::string>& hashes, const std::vector<std::string>& files);

}  // namespace attnbench
