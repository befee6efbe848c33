// Which cells a table of a recipe file selects.
#pragma once

#include <string>
#include <vector>

#include "harness/runner/data_file.hpp"
#include "harness/runner/declared_recipe.hpp"

namespace attnbench {

// The columns of the table with their values; 'run' names runs. Keys in `own` are not columns. Throws Misuse.
Selection selection_of(const DataTable& table, const std::vector<std::string>& own);

}  // namespace attnbench
