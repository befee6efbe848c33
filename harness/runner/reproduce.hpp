// Runs a recipe and judges it, either unchanged or with other seeds and settings to see what its verdicts depend on.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/runner/progress.hpp"
#include "harness/runner/recipe.hpp"
#include "harness/runner/run.hpp"

namespace attnbench {

struct Variation {
  Index seeds = 1;  // every verdict is made with this many seeds
  std::vector<Setting> settings = {};
  bool retry = false;  // cells that failed before run again
};

// Builds the recipe at that size; `further_seed` is added to its seeds. Throws Misuse for a value that a parameter
// cannot have.
std::unique_ptr<Recipe> written(const RecipeEntry& entry, RecipeSize size, const std::vector<Setting>& settings = {},
                                std::uint64_t further_seed = 0);

// Whether an experiment that the recipe runs measures time.
bool measures_time(const Recipe& recipe);

struct Forecast {
  RunEstimate total = {};
  std::vector<WholeProgress::Part> parts = {};  // one a recipe
};
// Estimates what the missing cells of these recipes will take together. Cells that recipes share count once, for the
// first of them. results: the store's file.
Forecast forecast(const std::vector<const RecipeEntry*>& recipes, RecipeSize size, const Variation& variation,
                  const Store& store, const std::filesystem::path& results);

// Runs what the store lacks, stores figures (of the first seed) and verdicts, and adds to `total`. Returns nullopt if
// interrupted: half of the numbers judge nothing.
std::optional<Reproduction> reproduce(const RecipeEntry& recipe, RecipeSize size, const Variation& variation,
                                      Store& store, std::int64_t run_id, RunSummary& total);

}  // namespace attnbench
