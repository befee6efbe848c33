// Values that a recipe file names: those of 'sizes', and of the 'for' of a table. Its texts name them in braces.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "harness/runner/data_file.hpp"
#include "harness/runner/recipe.hpp"

namespace attnbench {

using RecipeValues = std::map<std::string, DataValue>;

// A letter or _, then letters, digits or _: a name that braces may hold. Other braces are text.
bool is_identifier(std::string_view text);

// The values of 'sizes' at one size. A value is a table of sizes, or one for all sizes; texts may name the values above
// them. A file may use {turns}, the blocks and turns of recipes that time, without naming it. Throws Misuse.
RecipeValues values_at(const DataTable& file, RecipeSize size);

// Calls use(table, values) for each combination of values in the table's 'for', these and the given ones inserted; once
// without 'for'. 'for' is either a table of lists (all combinations of their values) or a list of tables (one
// combination per table). separator: between the elements of a list within a text. Throws Misuse.
void for_each(const DataTable& table, const RecipeValues& values, const std::string& separator,
              const std::function<void(const DataTable&, const RecipeValues&)>& use);

}  // namespace attnbench
