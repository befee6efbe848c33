// Recipes: published figures as configurations. One says what to run and how to draw it; the store keeps both.
#pragma once

#include "harness/runner/figure.hpp"

namespace attnbench {

enum class RecipeSize { smoke, quick, full };

struct RecipeEntry {
  static constexpr const char* kind = "recipe";
  static constexpr const char* plural = "recipes";

  Description text;  // summary: the statement in a sentence
  std::vector<Parameter> parameters = {};
  std::function<std::vector<RunRequest>(RecipeSize)> runs;
  std::function<std::vector<Figure>(RecipeSize)> figures;
};

}  // namespace attnbench
