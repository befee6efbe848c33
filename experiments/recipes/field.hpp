// The methods that recipes compare at equal cost: one spec for each idea in the literature, with its budget left open.
#pragma once

#include <string>
#include <vector>

#include "harness/runner/recipe.hpp"

namespace attnbench {

// Elementwise feature maps and Efficient attention appear with both conventions: inputs scaled by d^-1/4, as in this
// project, and raw inputs, as in their papers. For cosFormer both give the same: relu(c x) = c relu(x), and c cancels.
const std::vector<std::string>& field_methods();
// The ones that apply softmax to a fixed pattern of keys. None keeps more weight than top-k with as many keys.
const std::vector<std::string>& pattern_methods();
// Names of the budget parameters, which the names of curves leave out.
std::vector<std::string> budget_names();
// The methods at that shape with budgets for that many FLOPs. Left out: methods without a form at that shape, and those
// that still take more FLOPs than exact softmax.
std::vector<std::string> field_at(const Shape& shape, double flops);
double softmax_flops(const Shape& shape);
// Ratios of errors within this factor of 1 count as equal. No source gives a factor; this project chose it because an
// error that is a tenth smaller rarely decides which method to use.
constexpr double equal_within = 1.1;
// Where one method errs less than another: ratios of errors below 1.
extern const std::string equal_errors;  // the threshold in words
Finding errs_less_where(const std::vector<Region>& regions);
// A panel for each input: the error of the output against FLOPs, with the mean of V, which must be among the cells.
std::vector<Panel> errors_against_flops(const Cells& cells, const std::vector<std::string>& inputs);
// The error of the output against the speedup over softmax, memory as the circle; the mean of V must be among the
// cells.
Panel error_against_time(const std::string& title, const Cells& errors_and_speeds);
// A column of a table of methods, whose names have no budgets: the mean or the median of a metric.
Panel table_column(const Cells& cells, const std::string& metric, const std::string& label, const std::string& interval,
                   const std::string& scale);
// For one bidirectional head of n tokens with 64 channels.
double softmax_flops(Index n);

}  // namespace attnbench
