// A page about one method: its matrix beside the exact one, spectrum, sparsity, error and cost, in one figure from a
// few runs.
#pragma once

#include "harness/runner/recipe.hpp"

namespace attnbench {

struct MethodPage {
  std::unique_ptr<Recipe>
      recipe;     // no statements; its runs take at most a minute on two cores, seconds for most methods
  Figure figure;  // its name is the spec, in characters that are safe in file names
};

// The page of that spec, on one head of the input and on independent normal tokens. It uses the input's own mask if the
// method supports it, and otherwise no mask; the caption says which. Throws Misuse for an invalid spec or input, and
// for inputs of fewer than 64 tokens.
MethodPage method_page(const std::string& method, const std::string& input);

}  // namespace attnbench
