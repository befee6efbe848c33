#include "harness/cli/recipe_figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "harness/cli/recipe_selection.hpp"

namespace attnbench {

namespace {

// The fields of a panel by the keys of docs/figures.md.
Panel panel_of(const DataTable& table) {
  Panel panel;
  const std::vector<std::pair<std::string, std::string*>> texts{{"title", &panel.title},
                                                                {"kind", &panel.kind},
                                                                {"x_label", &panel.x_label},
                                                                {"x_scale", &panel.x_scale},
                                                                {"y", &panel.y},
                                                                {"y_label", &panel.y_label},
                                                                {"y_scale", &panel.y_scale},
                                                                {"interval", &panel.interval},
                                                                {"theory", &panel.theory},
                                                                {"ratio_to", &panel.ratio_to},
                                                                {"value_label", &panel.value_label},
                                                                {"x_metric", &panel.x_metric},
                                                                {"area", &panel.area},
                                                                {"area_label", &panel.area_label},
                                                                {"bound_x", &panel.bound_x},
                                                                {"mark_label", &panel.mark_label}};
  const std::vector<std::pair<std::string, std::vector<std::string>*>> lists{
      {"x", &panel.x},           {"y_axis", &panel.y_axis}, {"references", &panel.references},
      {"series", &panel.series}, {"ratio", &panel.ratio},   {"points", &panel.points},
      {"bound", &panel.bound}};
  const std::vector<std::pair<std::string, bool*>> flags{{"slope", &panel.slope},
                                                         {"crossing", &panel.crossing},
                                                         {"normalise_x", &panel.normalise_x},
                                                         {"winner", &panel.winner},
                                                         {"upside_down", &panel.upside_down}};
  const std::vector<std::pair<std::string, double*>> numbers{
      {"mark", &panel.mark}, {"floor", &panel.floor}, {"y_most", &panel.y_most}};
  std::vector<std::string> known{"cells", "each", "first_index", "for", "range"};
  for (const auto& [key, field] : texts) known.push_back(key);
  for (const auto& [key, field] : lists) known.push_back(key);
  for (const auto& [key, field] : flags) known.push_back(key);
  for (const auto& [key, field] : numbers) known.push_back(key);
  table.require_known("a panel", known);
  table.text("y");
  for (const auto& [key, field] : texts) *field = table.text_or(key, *field);
  for (const auto& [key, field] : lists)
    if (table.find(key)) *field = table.texts(key);
  for (const auto& [key, field] : flags) *field = table.flag_or(key, *field);
  for (const auto& [key, field] : numbers) *field = table.number_or(key, *field);
  panel.first_index = static_cast<Index>(std::clamp(table.number_or("first_index", 1), 0.0, 1e9));
  if (table.find("range")) panel.range = table.numbers("range");
  table.one_of("kind", panel.kind, {"curve", "profile", "histogram", "image", "map", "table", "trade"});
  table.one_of("interval", panel.interval, {"mean", "median"});
  for (const char* scale : {"x_scale", "y_scale"}) table.one_of(scale, "linear", {"linear", "log2", "log10"});
  if ((panel.kind == "curve" || panel.kind == "map") && panel.x.empty())
    table.refuse("'x' is missing; expected a size or a parameter, such as x = \"n\"");
  if (!panel.range.empty() && panel.range.size() != 2) table.refuse("range", "needs two numbers, such as [0, 1]");
  return panel;
}

}  // namespace

bool is_file_name(std::string_view text) {
  return !text.empty() && text.size() <= 100 && std::isalnum(static_cast<unsigned char>(text[0])) &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
         });
}

DeclaredFigure figure_of(const DataTable& table, const RecipeValues& values) {
  table.require_known("a figure", {"name", "title", "caption", "panels", "for"});
  DeclaredFigure figure{table.place(), table.text("name"), table.text("title"), table.text("caption"), {}};
  if (!is_file_name(figure.name)) table.refuse("name", "is not a name; expected letters, digits, '-' and '_'");
  for (const DataTable& panels : table.tables("panels"))
    for_each(panels, values, ", ", [&](const DataTable& panel, const RecipeValues&) {
      figure.panels.push_back({.place = panel.place(),
                               .panel = panel_of(panel),
                               .cells = panel.find("cells") ? selection_of(panel.table("cells"), {}) : Selection{},
                               .each = panel.texts("each"),
                               .given = {panel.keys().begin(), panel.keys().end()}});
    });
  if (figure.panels.empty()) table.refuse("'panels' is missing or empty; expected one at least");
  return figure;
}

}  // namespace attnbench
