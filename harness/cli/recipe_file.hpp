// Recipe files: runs, figures and statements of a recipe in TOML. docs/sharing.md describes the format. The project's
// own lie in experiments/recipes. Files in JSON are read for one more release.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "harness/runner/recipe.hpp"

namespace attnbench {

// The recipe that the text states. Throws Misuse with file and line for anything that it cannot mean; whether methods
// and parameters exist shows when the recipe is written. file: for messages.
RecipeEntry parse_recipe(std::string_view text, const std::string& file);

// The JSON file as one in TOML. Throws Misuse.
std::string recipe_in_toml(const std::filesystem::path& file);

// Whether a word of `reproduce` is a recipe file and not the name of a recipe.
bool names_recipe_file(const std::string& word);

// Reads and registers the recipe of a file, unless it is registered already, and returns its name. Throws Misuse.
std::string add_recipe(const std::filesystem::path& file);

// Registers the recipes beside the plugins of this process.
void add_recipes_of_plugins();

}  // namespace attnbench
