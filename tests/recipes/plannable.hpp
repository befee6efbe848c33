// Which recipes can be planned here: some measure a language model that `attnbench fetch` gets. Tests leave these out
// where it is not there; scripts/test_torch.sh runs them with it.
#pragma once

#include <string>
#include <vector>

#include "harness/errors/error.hpp"
#include "harness/runner/recipe.hpp"
#include "harness/runner/reproduce.hpp"

namespace attnbench {

inline bool plannable(const std::string& recipe, RecipeSize size) {
  try {
    written(find<RecipeEntry>(recipe), size);
  } catch (const NotFetched&) {
    return false;
  }
  return true;
}

inline std::vector<std::string> plannable_recipes(RecipeSize size) {
  std::vector<std::string> all = catalogue("recipes").names();
  std::erase_if(all, [&](const std::string& name) { return !plannable(name, size); });
  return all;
}

}  // namespace attnbench
