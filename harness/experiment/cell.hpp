// A cell is experiment x method spec x problem x input. One replicate of a cell is the unit of work, of failure and of
// resuming.
#pragma once

#include "harness/core/parameters.hpp"
#include "harness/core/problem.hpp"
#include "harness/inputs/input.hpp"
#include "harness/linalg/rounding.hpp"

namespace attnbench {

// Sizes and conditions that all methods share.
struct Problem {
  Shape shape;
  Index heads = 1;
  double logit_scale = 1;              // multiplies the logits; an axis, because the ranking of methods changes with it
  Rounding rounding = Rounding::none;  // of inputs and of all that the method computes: emulated half precision
};

struct Cell {
  Params experiment, method, input;
  Problem problem;
  std::uint64_t seed = 1;
  int threads = 1;

  // Identifies the measured head (head 0). Cells with the same key are grouped and share the cached exact results.
  std::string input_key() const;
  bool timing() const;  // whether its experiment measures time
};

// A context of calls of the cell's method.
Context context_of(const Cell& cell, int threads);
// Draws head `head` of a cell's input for one replicate, scales it and rounds it as the problem says. The exact result
// is computed from the same rounded inputs, so the error of a method does not contain the rounding of its inputs.
// Throws Skip if the method needs a further input that this one does not give.
HeadData<double> draw_cell_head(const Cell& cell, Index replicate, Index head, Purpose purpose);
// The keys at which the queries of the measured head 0 are aimed; empty when the input has no such keys.
std::vector<Index> needles_of(const Cell& cell, Index replicate);

}  // namespace attnbench
