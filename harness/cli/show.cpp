// attnbench show: prints a metric of a results file as a table for the terminal.
#include <fmt/format.h>

#include <iostream>
#include <map>

#include "harness/cli/command.hpp"
#include "harness/cli/metrics.hpp"
#include "harness/cli/shown_results.hpp"
#include "harness/cli/terminal.hpp"
#include "harness/core/spec.hpp"

namespace attnbench::show_command {
namespace {

int run(const std::vector<std::string>& arguments) {
  std::string file, metric;
  std::vector<std::string> where;
  options::options_description visible("options");
  visible.add_options()("file", options::value(&file), "results file")(
      "metric", options::value(&metric)->value_name("NAME"),
      "instead of each experiment's first metric; attnbench list metrics")(
      "where", options::value(&where)->value_name("NAME=VALUE"),
      "only these cells: a column or a parameter and its value; the same name again allows another value (repeatable)");
  if (!parse_arguments("show", visible, arguments, {{"file", 1}})) return 0;
  if (file.empty())
    throw Misuse("show: no results file given; expected one, such as: attnbench show results/attnbench.db");
  std::vector<CellCondition> conditions;
  for (const auto& condition : where) conditions.push_back(parse_condition(condition));
  std::map<std::string, std::vector<StoredCell>> by_experiment;
  for (StoredCell& cell : selected_cells(file, conditions))
    by_experiment[parse_spec(cell.column("experiment")).name].push_back(std::move(cell));
  if (by_experiment.empty()) {
    std::cout << file << " has no cells: attnbench run measures some\n";
    return 0;
  }
  constexpr size_t least = 8;  // lines of a table that is worth a look
  const size_t lines = terminal_lines(), tables = std::max<size_t>(1, std::min(by_experiment.size(), lines / least));
  std::string left;
  size_t printed = 0;
  for (const auto& [experiment, cells] : by_experiment) {
    const std::string table = shown_results(file, cells, experiment, metric, lines / tables);
    if (table.empty()) continue;
    if (printed++ < tables)
      std::cout << (printed > 1 ? "\n" : "") << table;
    else
      left += (left.empty() ? "" : ", ") + experiment;
  }
  if (!left.empty())
    std::cout << fmt::format("\nalso in this file: {}; --where experiment=NAME shows one of them\n", left);
  if (printed > 0) return 0;
  std::string foreign;
  for (const auto& [experiment, cells] : by_experiment)
    if (!catalogue("experiments").has(experiment)) foreign += (foreign.empty() ? "" : ", ") + experiment;
  if (metric.empty() && !foreign.empty())
    throw Misuse(
        fmt::format("show: '{}' has cells of {}, which comes from a plugin; add its --plugin, or say which "
                    "--metric to show",
                    file, foreign));
  if (metric.empty())
    throw Misuse(fmt::format("show: no experiment of '{}' has its first metric; --metric names another", file));
  std::vector<std::string> known;
  for (const auto& [name, experiments] : all_metrics())
    for (const auto& [experiment, one] : experiments)
      if (by_experiment.contains(experiment)) {
        known.push_back(name);
        break;
      }
  throw Misuse(
      fmt::format("show: no selected cell of '{}' has a number '{}'{}", file, metric, nearest_names(metric, known)));
}

const bool registered = add(CommandEntry{
    .text = {.name = "show",
             .summary = "a metric of a results file as a table: by method, along one axis, with intervals",
             .formula = "show FILE [--metric NAME] [--where NAME=VALUE...]"},
    .run = run,
    .examples = {"show results/attnbench.db", "show results/attnbench.db --metric speedup --where experiment=speed"}});

}  // namespace
}  // namespace attnbench::show_command
