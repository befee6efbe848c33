// Statements of a recipe file.
#pragma once

#include "harness/cli/recipe_values.hpp"
#include "harness/runner/declared_recipe.hpp"

namespace attnbench {

// A table of 'statements': its words, what it compares, its rule and its parts. Throws Misuse.
DeclaredStatement statement_of(const DataTable& table, const RecipeValues& values);

}  // namespace attnbench
