// A cell: experiment x method spec x problem x input. The unit of work, of failure and of resuming (with the
// replicate).
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
  double logit_scale = 1;              // the logits are multiplied by it: an axis, because orderings flip with it
  Rounding rounding = Rounding::none;  // of the inputs, and of what the method computes: half precision, emulated
};

struct Cell {
  Params experiment, method, input;
  Problem problem;
  std::uint64_t seed = 1;
  int threads = 1;

  // Everything that decides the measured head (head 0), for grouping and for caching what is exact.
  std::string input_key() const;
  bool timing() const;  // whether its experiment measures time
};

// Draws head `head` of a cell's input for one replicate, scaled, and rounded as the problem says: what is exact is then
// exact for the inputs that the method gets, and the error is that of its arithmetic.
HeadData<double> draw_cell_head(const Cell& cell, Index replicate, Index head, Purpose purpose);
// The keys that the queries of the measured head 0 are aimed at; empty when the input has no such keys.
std::vector<Index> needles_of(const Cell& cell, Index replicate);

}  // namespace attnbench
