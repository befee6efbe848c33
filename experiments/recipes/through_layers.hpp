// What the recipes about depth share: panels against the layer, and a number after one layer.
#pragma once

#include <limits>

#include "harness/measures/collapse.hpp"
#include "harness/runner/recipe.hpp"

namespace attnbench {

// An array of the experiment `depth` against the layer, on a logarithmic axis. first: the layer of its first element.
inline Panel through_layers(std::string title, nlohmann::json where, std::string metric, std::string label,
                            Index first) {
  where["experiment"] = "depth";
  return {.title = std::move(title),
          .kind = "profile",
          .where = std::move(where),
          .x_label = "layer",
          .y = std::move(metric),
          .y_label = std::move(label),
          .y_scale = "log10",
          .first_index = first};
}

// The array of one cell, a list a replicate.
inline std::vector<std::vector<double>> by_replicate(const Results& results, const nlohmann::json& where,
                                                     const std::string& metric, size_t length) {
  const auto all = results.array(where, metric);
  std::vector<std::vector<double>> replicates;
  for (size_t first = 0; first + length <= all.size(); first += length)
    replicates.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(first),
                            all.begin() + static_cast<std::ptrdiff_t>(first + length));
  return replicates;
}

// One element of it, by replicate.
inline Samples element(const Results& results, const nlohmann::json& where, const std::string& metric, size_t length,
                       size_t place) {
  Samples samples;
  for (const auto& values : by_replicate(results, where, metric, length))
    samples[static_cast<Index>(samples.size())] = values[place];
  return samples;
}

// The order at which the residual of a cell falls, down to the rounding of a double: of the replicates where it falls.
inline Samples orders_of_collapse(const Results& results, const nlohmann::json& where, size_t length, Index n) {
  const double floor = 16 * static_cast<double>(n) * std::numeric_limits<double>::epsilon();
  Samples samples;
  for (const auto& residuals : by_replicate(results, where, "residual_composite", length))
    if (const auto order = order_of_convergence(residuals, floor)) samples[static_cast<Index>(samples.size())] = *order;
  return samples;
}

}  // namespace attnbench
