#include "harness/runner/figure.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "harness/experiment/experiment.hpp"
#include "harness/figures/run_figure.hpp"

namespace attnbench {

namespace {
// Normalises a spec, so that conditions match however it was written.
std::string spelled(const std::string& plural, const std::string& spec) { return Params(plural, spec).spec(); }

std::vector<std::string> spelled(const std::vector<std::string>& methods) {
  std::vector<std::string> all;
  for (const auto& method : methods) all.push_back(spelled("methods", method));
  return all;
}

nlohmann::json description_of(const Panel& p) {
  return {{"title", p.title},
          {"kind", p.kind},
          {"x", p.x},
          {"x_label", p.x_label},
          {"x_scale", p.x_scale},
          {"y", p.y},
          {"y_label", p.y_label},
          {"y_scale", p.y_scale},
          {"interval", p.interval},
          {"theory", p.theory},
          {"references", spelled(p.references)},
          {"series", p.series},
          {"slope", p.slope},
          {"crossing", p.crossing},
          {"normalise_x", p.normalise_x},
          {"first_index", p.first_index},
          {"ratio_to", p.ratio_to.empty() ? "" : spelled("methods", p.ratio_to)},
          {"y_axis", p.y_axis},
          {"ratio", spelled(p.ratio)},
          {"winner", p.winner},
          {"value_label", p.value_label},
          {"x_metric", p.x_metric},
          {"points", p.points},
          {"area", p.area},
          {"area_label", p.area_label},
          {"bound", p.bound},
          {"bound_x", p.bound_x},
          {"range", p.range},
          {"mark", p.mark},
          {"mark_label", p.mark_label},
          {"floor", p.floor},
          {"upside_down", p.upside_down},
          {"y_most", p.y_most}};
}

std::string text_of(const Description& section, const std::string& title, const std::string& caption,
                    nlohmann::json panels, const HeadlineQuestion& asked = {}) {
  return nlohmann::json{{"title", title},
                        {"caption", caption},
                        {"recipe_title", section.summary},
                        {"statement", section.formula},
                        {"headline", asked.words},
                        {"place", asked.place},
                        {"panels", std::move(panels)}}
      .dump();
}
}  // namespace

Figure figure(std::string name, const Description& section, const std::string& title, const std::string& caption,
              const std::vector<Panel>& panels, const HeadlineQuestion& asked) {
  auto list = nlohmann::json::array();
  for (const Panel& panel : panels) {
    list.push_back(description_of(panel));
    list.back()["cells"] = panel.cells.keys();
  }
  return {std::move(name), text_of(section, title, caption, std::move(list), asked)};
}

Figure figure_of_run(const std::string& experiment) {
  const auto& entry = find<ExperimentEntry>(experiment);
  auto panels = nlohmann::json::array({description_of({.x = {"n"},
                                                       .y = entry.headline.metric,
                                                       .y_label = entry.headline.label,
                                                       .interval = entry.timing() ? "median" : "mean",
                                                       .theory = entry.headline.theory,
                                                       .slope = entry.timing()})});
  panels[0]["where"] = {{"experiment", experiment}};
  const Description section{
      .name = recipe_of_runs, .summary = "Runs", .formula = "Measurements of attnbench run in this results file."};
  return {experiment, text_of(section, entry.text.summary,
                              fmt::format("All cells of {} in the results file; {}s with 95 % intervals.", experiment,
                                          entry.timing() ? "median" : "mean"),
                              std::move(panels))};
}

}  // namespace attnbench
