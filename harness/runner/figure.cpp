#include "harness/runner/figure.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "harness/experiment/experiment.hpp"

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
                    nlohmann::json panels, const std::string& headline = {}) {
  return nlohmann::json{{"title", title},
                        {"caption", caption},
                        {"recipe_title", section.summary},
                        {"statement", section.formula},
                        {"headline", headline},
                        {"panels", std::move(panels)}}
      .dump();
}
}  // namespace

Figure figure(std::string name, const Description& section, const std::string& title, const std::string& caption,
              const std::vector<Panel>& panels, const std::string& headline) {
  auto list = nlohmann::json::array();
  for (const Panel& panel : panels) {
    list.push_back(description_of(panel));
    list.back()["cells"] = panel.cells.keys();
  }
  return {std::move(name), text_of(section, title, caption, std::move(list), headline)};
}

Figure figure_of_run(const RunRequest& request) {
  const Params experiment("experiments", request.experiment);
  const auto& entry = find<ExperimentEntry>(experiment.name());
  std::vector<std::string> axes;
  if (request.n.size() > 1) axes.push_back("n");
  if (request.d.size() > 1) axes.push_back("d");
  for (const auto& axis : request.sweep)
    if (axis.values.size() > 1 && axis.name != "round") axes.push_back(axis.name);  // round is not a number
  if (axes.empty()) axes.push_back("n");
  // Axes that move together form one x axis, with sizes first, because every cell has them.
  std::vector<std::string> x{axes[0]};
  for (const auto& zip : request.zip)
    if (std::find(zip.begin(), zip.end(), axes[0]) != zip.end()) x = zip;
  std::stable_partition(x.begin(), x.end(), [&](const std::string& name) {
    return name == "n" || name == "d" || name == "dv" || name == "heads" || name == "logit_scale";
  });
  std::erase_if(axes, [&](const std::string& name) { return std::find(x.begin(), x.end(), name) != x.end(); });
  axes.insert(axes.begin(), x[0]);

  // If only some methods have the axis as a parameter, the others are references over the whole range.
  std::vector<std::string> with_axis, without_axis;
  for (const auto& spec : request.methods) {
    const Params method("methods", spec);
    (method.has(axes[0]) ? with_axis : without_axis).push_back(method.spec());
  }
  if (with_axis.empty()) without_axis.clear();
  std::vector<std::string> series{"method"};
  for (size_t i = 1; i < axes.size(); ++i) series.push_back(axes[i]);
  for (const auto& axis : request.sweep)
    if (axis.name == "round" && axis.values.size() > 1) series.push_back(axis.name);

  auto panels = nlohmann::json::array();
  for (const auto& input : request.inputs) {
    const std::string spec = Params("inputs", input).spec();
    panels.push_back(description_of({.title = spec,
                                     .x = x,
                                     .x_label = axes[0],
                                     .x_scale = "log2",
                                     .y = entry.headline.metric,
                                     .y_label = entry.headline.label,
                                     .y_scale = "log10",
                                     .interval = entry.timing() ? "median" : "mean",
                                     .theory = entry.headline.theory,
                                     .references = without_axis,
                                     .series = series,
                                     .slope = entry.timing()}));
    panels.back()["where"] = {{"experiment", experiment.name()}, {"input", spec}};
  }
  const Description section{
      .name = "runs", .summary = "Runs", .formula = "Measurements of attnbench run in this results file."};
  return {fmt::format("{}-{}", experiment.name(), axes[0]),
          text_of(section, entry.text.summary, "All methods of the results file with this experiment and input.",
                  std::move(panels))};
}

}  // namespace attnbench
