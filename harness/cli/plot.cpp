// attnbench plot: the figures of results files, or one that the user asks for, as SVG, PDF or PNG with their numbers.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "harness/cli/command.hpp"
#include "harness/cli/script.hpp"
#include "harness/cli/terminal.hpp"
#include "harness/core/spec.hpp"
#include "harness/experiment/experiment.hpp"
#include "harness/figures/draw_figures.hpp"
#include "harness/figures/measured_results.hpp"
#include "harness/figures/run_figure.hpp"
#include "harness/store/verify.hpp"

namespace attnbench::plot_command {
namespace {

// The question of a user, and the cells that it is about.
struct Question : FigureQuestion {
  std::vector<std::string> where = {};
};

// The word after --log.
std::string log_of(const std::vector<std::string>& words) {
  if (words.size() > 1)
    throw Misuse(fmt::format("plot: --log {}: expected one word: --log xy makes both axes logarithmic",
                             fmt::join(words, " --log ")));
  return words.empty() ? "" : words.front();
}

std::set<std::string> columns_of(const std::vector<StoredCell>& cells) {
  std::set<std::string> names;
  for (const StoredColumn& column : cell_columns) names.emplace(column.name);
  for (const StoredCell& cell : cells)
    for (const auto& [name, value] : cell.parameters.items()) names.insert(name);
  return names;
}

// Whether cells have several numbers for a size or a parameter.
bool is_axis(const std::vector<StoredCell>& cells, const std::string& name) {
  std::set<double> numbers;
  for (const StoredCell& cell : cells)
    if (const auto value = cell.value(name)) {
      const auto number = number_in(*value);
      if (!number) return false;
      numbers.insert(*number);
    }
  return name != "seed" && numbers.size() > 1;
}

void require_axis(const std::vector<StoredCell>& cells, const std::set<std::string>& columns) {
  if (std::any_of(columns.begin(), columns.end(), [&](const auto& name) { return is_axis(cells, name); })) return;
  throw Misuse(
      "plot: the cells do not differ in any number; expected several sizes or values of a parameter: --x NAME names "
      "one, "
      "--where NAME=VALUE selects cells");
}

void require_known(const std::string& option, const std::string& name, const std::set<std::string>& known) {
  if (!known.contains(name))
    throw Misuse(fmt::format("plot: {} {}: no cell has a column or a parameter of this name{}", option, name,
                             nearest_names(name, std::vector<std::string>(known.begin(), known.end()))));
}

bool ended_otherwise(const std::vector<MeasuredResults::Replicate>& replicates) {
  return std::any_of(replicates.begin(), replicates.end(), [](const auto& replicate) { return !replicate.done(); });
}

// The cells of the question's experiment that have its metric, and those that were not done.
std::vector<StoredCell> cells_of(const Question& asked, const std::string& file, const MeasuredResults& results) {
  std::vector<CellCondition> conditions;
  for (const auto& condition : asked.where) conditions.push_back(parse_condition(condition));
  std::vector<std::string> keys;
  for (const StoredCell& cell : selected_cells(file, conditions)) keys.push_back(cell.key);
  const std::vector<size_t> places = results.positions(keys);
  std::set<std::string> experiments;
  for (const size_t place : places)
    if (!results.values(place, asked.metric).empty())
      experiments.insert(parse_spec(results.cells()[place].column("experiment")).name);
  if (experiments.empty())
    throw Misuse(fmt::format("plot: --y {}: no selected cell of '{}' has this number{}", asked.metric, file,
                             nearest_names(asked.metric, results.metrics_of(places))));
  if (experiments.size() > 1)
    throw Misuse(fmt::format("plot: {} experiments have {}: {}; expected one: add --where experiment={}",
                             experiments.size(), asked.metric, fmt::join(experiments, ", "), *experiments.begin()));
  std::vector<StoredCell> cells;
  std::set<std::string> without;
  for (const size_t place : places) {
    const StoredCell& cell = results.cells()[place];
    if (!experiments.contains(parse_spec(cell.column("experiment")).name)) continue;
    if (!results.values(place, asked.metric).empty() || ended_otherwise(results.replicates(place)))
      cells.push_back(cell);
    else
      without.insert(cell.column("method"));
  }
  if (!without.empty())
    print_message(
        fmt::format("note: not drawn, because cells of theirs have no {}: {}", asked.metric, fmt::join(without, ", ")));
  return cells;
}

// The label of the metric if it is the headline of the cells' experiment; else empty.
std::string headline_of(const std::vector<StoredCell>& cells, const std::string& metric) {
  const std::string name = parse_spec(cells.front().column("experiment")).name;
  if (!catalogue("experiments").has(name)) return "";
  const Headline& headline = find<ExperimentEntry>(name).headline;
  return headline.metric == metric ? headline.label : "";
}

// The description of the figure (docs/figures.md).
nlohmann::json description_of(const Question& asked, const std::string& file) {
  const MeasuredResults results(file);
  const std::vector<StoredCell> cells = cells_of(asked, file, results);
  const auto columns = columns_of(cells);
  if (asked.x.empty())
    require_axis(cells, columns);
  else
    require_known("--x", asked.x, columns);
  for (const auto& name : asked.series) require_known("--series", name, columns);
  std::vector<std::string> keys;
  for (const StoredCell& cell : cells) keys.push_back(cell.key);
  const std::vector<size_t> places = results.positions(keys);
  const bool arrays = std::any_of(places.begin(), places.end(), [&](size_t place) {
    return std::ranges::any_of(results.values(place, asked.metric),
                               [](const auto& replicate) { return !replicate.second.shape.empty(); });
  });
  nlohmann::json like{{"kind", "curve"}, {"y", asked.metric}, {"interval", arrays ? "median" : "mean"}};
  const std::string theory = asked.metric + "_theory";
  const auto metrics = results.metrics_of(places);
  if (std::find(metrics.begin(), metrics.end(), theory) != metrics.end()) like["theory"] = theory;
  if (const std::string label = headline_of(cells, asked.metric); !label.empty()) like["y_label"] = label;
  nlohmann::json panels = panels_of_cells(results, places, asked, like);
  if (panels.size() == 1) panels[0]["title"] = "";
  return {{"title", fmt::format("{} over {}", asked.metric, panels[0]["x"][0].get<std::string>())},
          {"caption", ""},
          {"panels", panels}};
}

int run(const std::vector<std::string>& arguments) {
  std::vector<std::string> files, figures;
  std::string output = "figures", formats = "svg,pdf", style = "report", table;
  std::vector<std::string> renamed, logs;
  std::map<std::string, std::string> changes;
  bool points = false, tex = false, facet = false;
  Question asked;
  options::options_description visible("options");
  visible.add_options()("file", options::value(&files),
                        "results files (default: results/attnbench.db), or one NAME.json")(
      "output,o", options::value(&output)->value_name("FOLDER"), "for the files [figures]")(
      "format", options::value(&formats)->value_name("LIST"), "of svg,pdf,png [svg,pdf]")(
      "figure", options::value(&figures)->value_name("NAME"),
      "only these of the stored figures: NAME, RECIPE or RECIPE/NAME (repeatable)")(
      "y", options::value(&asked.metric)->value_name("METRIC"),
      "instead of stored figures, one of this metric, with its closed form where cells have one")(
      "x", options::value(&asked.x)->value_name("NAME"), "of --y: a size or a parameter [the one with most values]")(
      "where", options::value(&asked.where)->value_name("NAME=VALUE"),
      "of --y: only these cells; the same name again allows another value (repeatable)")(
      "series", options::value(&asked.series)->value_name("NAME"),
      "of --y: a column or a parameter that names a curve, averaged over others (repeatable) [all that differ]")(
      "log", options::value(&logs)->value_name("AXES"), "of --y: x, y, xy or none [by the range of the numbers]")(
      "style", options::value(&style)->value_name("STYLE"),
      "report, or paper: as wide as a column, without title and notes, and with a file NAME.json that plot draws "
      "again; exit code 3: something is left out [report]")("table", options::value(&table)->value_name("FORMAT"),
                                                            "also the numbers as a table: latex or markdown")(
      "rename", options::value(&renamed)->value_name("SERIES=NAME"), "a series in the legend (repeatable)")(
      "title", options::value(&changes["--title"])->value_name("TEXT"), "of the figure")(
      "xlabel", options::value(&changes["--xlabel"])->value_name("TEXT"), "of every x axis")(
      "ylabel", options::value(&changes["--ylabel"])->value_name("TEXT"), "of every y axis")(
      "size", options::value(&changes["--size"])->value_name("WxH"), "of the figure in inches, such as 3.3x2.4")(
      "font", options::value(&changes["--font"])->value_name("FAMILY"), "such as serif or a font's name")(
      "legend-order", options::value(&changes["--legend-order"])->value_name("A;B"), "the first series of the legend")(
      "tex", options::bool_switch(&tex), "LaTeX sets the words")("facet", options::bool_switch(&facet),
                                                                 "a panel for each series")(
      "points", options::bool_switch(&points),
      "only compute the points of the stored figures into the file's tables panel and point, for your own programs");
  if (!parse_arguments("plot", visible, arguments, {{"file", -1}})) return 0;
  asked.log = log_of(logs);
  if (files.empty()) files = {"results/attnbench.db"};
  if (asked.metric.empty() && (!asked.x.empty() || !asked.where.empty() || !asked.series.empty() || !asked.log.empty()))
    throw Misuse("plot: --x, --where, --series and --log belong to a figure of one metric; add --y METRIC");
  if (!asked.metric.empty() && !figures.empty())
    throw Misuse(fmt::format("plot: --figure {} beside --y; expected one of them", figures[0]));
  if (!asked.log.empty() && !std::set<std::string>{"x", "y", "xy", "none"}.contains(asked.log))
    throw Misuse(fmt::format("plot: --log {}: expected x, y, xy or none", asked.log));
  if (points) {
    if (files.size() > 1 || !asked.metric.empty() || !figures.empty())
      throw Misuse("plot: --points computes all figures of one file; expected one file, without --y and --figure");
    require_whole(files[0]);
    draw_figures(files[0], better_of);
    return 0;
  }
  std::vector<std::string> words{"-o", output, "--format", formats, "--style", style};
  if (!table.empty()) words.insert(words.end(), {"--table", table});
  for (const auto& figure : figures) words.insert(words.end(), {"--figure", figure});
  for (const auto& renaming : renamed) words.insert(words.end(), {"--rename", renaming});
  for (const auto& [option, value] : changes)
    if (!value.empty()) words.insert(words.end(), {option, value});
  if (tex) words.emplace_back("--tex");
  if (facet) words.emplace_back("--facet");
  if (files.size() == 1 && files[0].ends_with(".json")) {
    if (!asked.metric.empty() || !figures.empty())
      throw Misuse(fmt::format("plot: '{}' holds one figure; --y and --figure need a results file", files[0]));
    words.insert(words.begin(), files[0]);
    return run_script("plot.py", words);
  }
  const UnitedResults measured(files, asked.metric.empty());
  if (asked.metric.empty()) {
    draw_figures(measured.file(), better_of);
    words.insert(words.begin(), measured.file());
    return run_script("plot.py", words);
  }
  const nlohmann::json description = description_of(asked, measured.file());
  const ScratchFolder scratch;
  const std::string drawn = scratch.path / "drawn.db";
  const std::string missing =
      draw_figure(measured.file(), description["title"].get<std::string>(), description.dump(), drawn, better_of);
  if (!missing.empty()) throw Misuse("plot: " + missing);
  words.insert(words.begin(), drawn);
  return run_script("plot.py", words);
}

const bool registered = add(CommandEntry{
    .text = {.name = "plot",
             .summary = "figures of results files (SVG, PDF, PNG, CSV): the stored ones, or any metric over any axis",
             .formula = "plot [FILE...] [--y METRIC [--x NAME] [--where NAME=VALUE...]] [-o FOLDER]"},
    .run = run,
    .examples = {"plot results/attnbench.db --y kernel_mse --x m", "plot results/attnbench.db --figure kernel-mse",
                 "plot results/attnbench.db --y seconds --x n --where method=softmax --where method=performer "
                 "--style paper"}});

}  // namespace
}  // namespace attnbench::plot_command
