#include "experiments/recipes/figure.hpp"

namespace attnbench {

Figure figure(std::string name, const Description& recipe, std::string title, std::string caption,
              const std::vector<Panel>& panels) {
  auto list = nlohmann::json::array();
  for (const auto& p : panels)
    list.push_back({{"title", p.title},
                    {"kind", p.kind},
                    {"where", p.where},
                    {"x", p.x},
                    {"x_label", p.x_label},
                    {"x_scale", p.x_scale},
                    {"y", p.y},
                    {"y_label", p.y_label},
                    {"y_scale", p.y_scale},
                    {"interval", p.interval},
                    {"theory", p.theory},
                    {"references", p.references},
                    {"slope", p.slope},
                    {"normalise_x", p.normalise_x}});
  const nlohmann::json json{{"title", std::move(title)},
                            {"caption", std::move(caption)},
                            {"recipe_title", recipe.summary},
                            {"statement", recipe.formula},
                            {"panels", list}};
  return {std::move(name), json.dump()};
}

}  // namespace attnbench
