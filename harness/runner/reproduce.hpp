// Runs a recipe and judges it: as it is, or with other seeds and settings to see what its verdicts depend on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/runner/recipe.hpp"
#include "harness/runner/run.hpp"

namespace attnbench {

// A parameter's value, wherever a method, input or experiment of a recipe has it and the recipe leaves it as it is by
// default. What a recipe states, its axes among it, stays.
struct Setting {
  std::string name, value;
};

struct Variation {
  Index seeds = 1;  // each verdict is made anew with so many
  std::vector<Setting> settings = {};
};

std::string to_string(RecipeSize size);

// The recipe's cells with its first seed, varied. Throws Misuse for a value that a parameter cannot have.
std::vector<RecipeCell> cells_of(const std::vector<RunRequest>& requests, const std::vector<Setting>& settings);
// The settings that change no cell.
std::vector<Setting> without_effect(const std::vector<Setting>& settings, const std::vector<RecipeCell>& cells);

// Runs what the store lacks, keeps figures (of the first seed) and verdicts in it, and adds to `total`. Nothing when it
// was interrupted: half of the numbers judge nothing.
std::optional<Reproduction> reproduce(const RecipeEntry& recipe, RecipeSize size, const Variation& variation,
                                      Store& store, std::int64_t run_id, RunSummary& total);

}  // namespace attnbench
