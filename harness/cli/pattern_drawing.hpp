// Draws the pattern of a sparse method: the keys to which each row of one head gives weight.
#pragma once

#include <optional>
#include <string>

#include "harness/core/parameters.hpp"

namespace attnbench {

struct PatternDrawing {
  std::optional<Index> n;  // empty: 64, doubled up to 1024 until half of the pairs that the mask leaves are left out
  bool causal = false;
  std::string image;  // also draw it to this .png or .svg file; empty: do not
};

// Prints the n x n mask of a method that has a pattern, one character per pair, with its number of pairs and density.
// Patterns that depend on content are those of a seeded Gaussian head. Throws Misuse for methods without a pattern.
void draw_pattern(const Params& params, const PatternDrawing& drawing);

}  // namespace attnbench
