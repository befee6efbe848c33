// The methods of the field as recipes compare them at equal cost: one spec of each idea, its budget left open.
#pragma once

#include <string>
#include <vector>

#include "harness/runner/recipe.hpp"

namespace attnbench {

// Elementwise feature maps and Efficient attention are in with both conventions: inputs scaled by d^-1/4, as this
// project does, and raw inputs, as their papers do. To cosFormer both are the same: relu(c x) = c relu(x), and c
// cancels.
const std::vector<std::string>& field_methods();
// Those of them that are softmax on a pattern of keys that is not drawn; top-k bounds them.
const std::vector<std::string>& pattern_methods();
// Names of the parameters that say how much is spent: left out of the names of curves.
std::vector<std::string> budget_names();
// The field at that shape with budgets for so many FLOPs. Left out: those without a form there, and those that still
// take more FLOPs than softmax, which approximate nothing.
std::vector<std::string> field_at(const Shape& shape, double flops);
double softmax_flops(const Shape& shape);
// Ratios of errors within this factor of 1 count as equal. It is this project's choice: no source gives one, and who
// picks a method for a tenth less error has other reasons to decide by.
constexpr double equal_within = 1.1;
// Where one method errs less than another: ratios of errors below 1.
extern const std::string equal_errors;  // the threshold in words
Finding errs_less_where(const std::vector<Region>& regions);
// A panel for each input: the error of the output against FLOPs, with the mean of V, which must be among the cells.
std::vector<Panel> errors_against_flops(const Cells& cells, const std::vector<std::string>& inputs);
// On one bidirectional head of n tokens of 64 channels.
double softmax_flops(Index n);

}  // namespace attnbench
