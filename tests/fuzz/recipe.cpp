// Recipe files in TOML, up to the requests of their runs at every size.
#include "harness/cli/recipe_file.hpp"
#include "tests/fuzz/bounded.hpp"

using namespace attnbench;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, size_t size) {
  const AllocationBound bound((size_t{8} << 20) + 64 * size);  // as in sweep.cpp
  try {
    const RecipeEntry entry = parse_recipe(text_of(data, size), "mine.recipe.toml");
    require(!entry.text.name.empty() && !entry.text.summary.empty(), "a recipe has a name and a title");
  } catch (const Misuse&) {
  }
  return 0;
}
