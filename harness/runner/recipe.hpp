// Recipes: published figures as configurations. One says what to run, how to draw it and what its numbers say of the
// published statement; the store keeps all of it.
#pragma once

#include "harness/runner/figure.hpp"
#include "harness/runner/verdict.hpp"

namespace attnbench {

enum class RecipeSize { smoke, quick, full };

struct RecipeEntry {
  static constexpr const char* kind = "recipe";
  static constexpr const char* plural = "recipes";

  Description text;  // summary: the statement in a sentence
  std::vector<Parameter> parameters = {};
  std::function<std::vector<RunRequest>(RecipeSize)> runs;
  std::function<std::vector<Figure>(RecipeSize)> figures;
  // One verdict a statement, from the measurements of `runs`. Empty: nothing is judged.
  std::function<std::vector<Verdict>(const Results&, RecipeSize)> judge = {};
};

}  // namespace attnbench
