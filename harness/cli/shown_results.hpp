// Tables of results on a terminal, at the end of `attnbench run` and for `attnbench show`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/store/selection.hpp"

namespace attnbench {

// The table of one experiment's cells, for a screen of this terminal. metric: empty for the experiment's headline.
// Empty if they have no such number. lines: of the screen that are left.
std::string shown_results(const std::filesystem::path& results, const std::vector<StoredCell>& cells,
                          const std::string& experiment, const std::string& metric, size_t lines);

}  // namespace attnbench
