// Runs a recipe and judges it: as it is, or with other seeds and settings to see what its verdicts depend on.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/runner/recipe.hpp"
#include "harness/runner/run.hpp"

namespace attnbench {

struct Variation {
  Index seeds = 1;  // every verdict is made again with so many
  std::vector<Setting> settings = {};
};

// The recipe's statements and cells at that size, with its first seed. Throws Misuse for a value that a parameter
// cannot have.
std::unique_ptr<Recipe> written(const RecipeEntry& entry, RecipeSize size, const std::vector<Setting>& settings = {},
                                std::uint64_t further_seed = 0);

// Whether an experiment that the recipe runs measures time.
bool measures_time(const Recipe& recipe);

// The time that the missing cells of these recipes will take together; cells that they share count once. results: the
// store's file.
RunEstimate forecast(const std::vector<const RecipeEntry*>& recipes, RecipeSize size, const Variation& variation,
                     const Store& store, const std::filesystem::path& results);

// Runs what the store lacks, keeps figures (of the first seed) and verdicts in it, and adds to `total`. Nothing when it
// was interrupted: half of the numbers judge nothing.
std::optional<Reproduction> reproduce(const RecipeEntry& recipe, RecipeSize size, const Variation& variation,
                                      Store& store, std::int64_t run_id, RunSummary& total);

}  // namespace attnbench
