// Figures of a recipe file.
#pragma once

#include "harness/cli/recipe_values.hpp"
#include "harness/runner/declared_recipe.hpp"

namespace attnbench {

// Letters, digits, '-', '_' and '.', at most 100: a name of a recipe or of a figure's file.
bool is_file_name(std::string_view text);

// A table of 'figures'. Throws Misuse.
DeclaredFigure figure_of(const DataTable& table, const RecipeValues& values);

}  // namespace attnbench
