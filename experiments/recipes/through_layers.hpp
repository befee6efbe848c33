// A panel that the recipes about depth share.
#pragma once

#include <string>

#include "harness/runner/recipe.hpp"

namespace attnbench {

// An array of the experiment `depth` against the layer, on a logarithmic axis. first: the layer of its first element.
inline Panel through_layers(std::string title, const Cells& cells, std::string metric, std::string label, Index first) {
  return {.title = std::move(title),
          .kind = "profile",
          .cells = cells,
          .x_label = "layer",
          .y = std::move(metric),
          .y_label = std::move(label),
          .y_scale = "log10",
          .first_index = first};
}

}  // namespace attnbench
