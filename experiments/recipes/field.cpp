#include "experiments/recipes/field.hpp"

#include <fmt/format.h>

#include <set>

#include "harness/figures/looks.hpp"
#include "harness/runner/match.hpp"

namespace attnbench {

const std::vector<std::string>& field_methods() {
  static const std::vector<std::string> all{"performer",
                                            "performer:features=trig",
                                            "linear",
                                            "linear:inputs=unscaled",
                                            "linear:features=exp,inputs=unscaled",
                                            "efficient",
                                            "efficient:inputs=unscaled",
                                            "taylor",
                                            "cosformer",
                                            "linformer",
                                            "linformer:projection=mean-pool",
                                            "nystrom",
                                            "vq",
                                            "soft-vq",
                                            "local",
                                            "dilated",
                                            "strided",
                                            "sparse-fixed",
                                            "longformer",
                                            "bigbird",
                                            "truncated",
                                            "reformer",
                                            "routing",
                                            "clustered",
                                            "improved-clustered",
                                            "sinkhorn",
                                            "combine",
                                            "combine:[local],[nystrom]",
                                            "synthesizer:kind=factorised",
                                            "fnet"};
  return all;
}

const std::vector<std::string>& pattern_methods() {
  static const std::vector<std::string> all{"local", "dilated", "strided", "sparse-fixed", "longformer"};
  return all;
}

std::vector<std::string> budget_names() {
  std::set<std::string> names;
  for (const auto& name : catalogue("methods").names()) {
    const Params method("methods", name);
    for (const Parameter& p : method.declared())
      if (p.budget) names.insert(p.name);
  }
  return {names.begin(), names.end()};
}

std::vector<std::string> field_at(const Shape& shape, double flops) {
  std::vector<std::string> all;
  for (const auto& method : field_methods()) {
    const Params spec = matched(Params("methods", method), shape, {Match::Cost::flops, flops});
    const bool has_form = find<MethodEntry>(spec.name()).claims(spec, shape).no_form.empty();
    if (has_form && *cost_of(spec, shape, Match::Cost::flops) <= softmax_flops(shape)) all.push_back(spec.spec());
  }
  return all;
}

double softmax_flops(const Shape& shape) { return *cost_of(Params("methods", "softmax"), shape, Match::Cost::flops); }

const std::string equal_errors = fmt::format(
    "1: equal errors. Intervals that hold 1 and lie within a factor of {:g} of it count as equal, which is not less",
    equal_within);
Finding errs_less_where(const std::vector<Region>& regions) { return below_where(1, regions, {}, equal_within); }

std::vector<Panel> errors_against_flops(const Cells& cells, const std::vector<std::string>& inputs) {
  std::vector<Panel> panels;
  for (const auto& input : inputs)
    panels.push_back({.title = printed_spec("inputs", input),
                      .kind = "trade",
                      .cells = cells.input(input),
                      .x = budget_names(),
                      .x_label = "FLOPs of a call",
                      .x_scale = "log2",
                      .y = "relative_output_error",
                      .y_label = "error of the output",
                      .y_scale = "log10",
                      .references = {"uniform"},
                      .x_metric = "flops"});
  return panels;
}

double softmax_flops(Index n) { return softmax_flops({.nq = n, .nk = n, .d = 64, .dv = 64}); }

Panel error_against_time(const std::string& title, const Cells& errors_and_speeds) {
  return {.title = title,
          .kind = "trade",
          .cells = errors_and_speeds,
          .x = budget_names(),
          .x_label = "times faster than exact softmax",
          .x_scale = "log2",
          .y = "relative_output_error",
          .y_label = "error of the output, better above",
          .y_scale = "log10",
          .references = {"uniform"},
          .x_metric = "speedup",
          .area = "peak_bytes",
          .area_label = "peak memory of a call beyond inputs and output",
          .upside_down = true,
          .y_most = 2};
}

Panel table_column(const Cells& cells, const std::string& metric, const std::string& label, const std::string& interval,
                   const std::string& scale) {
  return {.title = label,
          .kind = "table",
          .cells = cells,
          .x = budget_names(),
          .y = metric,
          .y_label = label,
          .y_scale = scale,
          .interval = interval};
}

}  // namespace attnbench
