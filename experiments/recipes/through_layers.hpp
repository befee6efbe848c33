// What the recipes about depth share: panels against the layer, and a number after one layer.
#pragma once

#include <span>

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

}  // namespace attnbench
