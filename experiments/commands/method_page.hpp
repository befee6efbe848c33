// One method on one page: its matrix beside the exact one, spectrum, sparsity, error and cost, as a figure of a few
// runs.
#pragma once

#include "harness/runner/recipe.hpp"

namespace attnbench {

struct MethodPage {
  std::unique_ptr<Recipe>
      recipe;     // states nothing; its runs take a minute at most on two cores, for most methods seconds
  Figure figure;  // its name is the spec, with characters that are safe in the name of a file
};

// What the page of that spec shows, on one head of the input and on independent normal tokens. The mask is the input's
// own where the method has a form for it, and none where not: the caption says which. Throws Misuse for a spec or an
// input that cannot be, and for inputs of fewer than 64 tokens.
MethodPage method_page(const std::string& method, const std::string& input);

}  // namespace attnbench
