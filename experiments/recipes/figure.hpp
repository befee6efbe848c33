// Figures as data: the JSON of docs/figures.md, built with names instead of braces.
#pragma once

#include <nlohmann/json.hpp>

#include "harness/runner/recipe.hpp"

namespace attnbench {

// One panel. Members are the fields of docs/figures.md.
struct Panel {
  std::string title;
  std::string kind = "curve";
  nlohmann::json where;
  std::vector<std::string> x = {};  // a size or a parameter; of several, the one that a cell has
  std::string x_label, x_scale = "linear";
  std::string y, y_label, y_scale = "linear";
  std::string interval = "mean";
  std::string theory = {};
  std::vector<std::string> references = {};
  bool slope = false;
  bool normalise_x = false;
};

Figure figure(std::string name, const Description& recipe, std::string title, std::string caption,
              const std::vector<Panel>& panels);

}  // namespace attnbench
