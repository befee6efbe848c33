// attnbench list: prints the registered entries.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <map>

#include "harness/cli/command.hpp"
#include "harness/cli/metrics.hpp"
#include "harness/cli/promises.hpp"
#include "harness/cli/terminal.hpp"

namespace attnbench::list_command {
namespace {

std::string claims_of(const Params& method) {
  std::string words;
  for (const Promise& promise : promises_of(method))
    if (!promise.brief.empty()) words += (words.empty() ? "" : ", ") + promise.brief;
  return words;
}

void print(const Catalogue& entries, bool markdown) {
  if (markdown) {
    const bool methods = entries.plural() == std::string("methods");
    std::cout << fmt::format("| {} | what it is | parameters | {}cost |\n|---|---|---|---|{}\n", entries.kind(),
                             methods ? "claims at these | " : "", methods ? "---|" : "");
    for (const auto& name : entries.names()) {
      std::string parameters;
      const Params defaults(entries.plural(), name);
      for (const auto& p : defaults.declared())
        parameters += fmt::format("{}`{}={}`", parameters.empty() ? "" : " ", p.name, p.default_value);
      const auto& text = entries.description(name);
      const std::string also = text.aliases.empty() ? "" : fmt::format(" (also `{}`)", fmt::join(text.aliases, "`, `"));
      std::cout << fmt::format("| `{}`{} | {} | {} | {}{} |\n", name, also, text.summary, parameters,
                               methods ? claims_of(defaults) + " | " : "", text.cost);
    }
    return;
  }
  const auto names = entries.names();
  size_t width = 14;
  for (const auto& name : names) width = std::max(width, name.size());
  // Of methods there are many: a heading for each family.
  std::map<std::string, std::vector<std::string>> groups;
  for (const auto& name : names) {
    const std::string& family = entries.description(name).family;
    const bool by_family = entries.plural() == std::string("methods") && !family.empty();
    groups[by_family ? fmt::format("{}: {}", entries.plural(), family) : entries.plural()].push_back(name);
  }
  for (const auto& [heading, members] : groups) {
    std::cout << bold(heading) << "\n";
    for (const auto& name : members)
      std::cout << fmt::format("  {:<{}}  {}\n", name, width,
                               wrapped(entries.description(name).summary, text_width(), width + 4, width + 4));
  }
}

// Each metric once, with the experiments that measure it.
void print_metrics(bool markdown) {
  if (markdown) std::cout << "| metric | unit | what it is | experiments |\n|---|---|---|---|\n";
  if (!markdown) std::cout << bold("metrics") << "\n";
  for (const auto& [name, experiments] : all_metrics()) {
    const Metric& metric = experiments.front().second;
    std::string where;
    for (const auto& [experiment, same] : experiments) where += (where.empty() ? "" : ", ") + experiment;
    if (markdown)
      std::cout << fmt::format("| `{}` | {} | {} | {} |\n", name, metric.unit, metric.text, where);
    else
      std::cout << fmt::format(
          "  {:<34}  {}\n", name,
          wrapped(fmt::format("[{}] {} ({})", metric.unit, metric.text, where), text_width(), 38, 38));
  }
}

int run(const std::vector<std::string>& arguments) {
  options::options_description visible("options");
  std::string what;
  bool markdown = false;
  visible.add_options()(
      "what", options::value(&what),
      "methods, features, deterministic-features, projections, key-scores, inputs, experiments, recipes or metrics")(
      "markdown", options::bool_switch(&markdown), "as a table for a README");
  if (!parse_arguments("list", visible, arguments, {{"what", 1}})) return 0;
  const std::vector<std::string> kinds{"methods",     "features",   "deterministic-features",
                                       "projections", "key-scores", "inputs",
                                       "experiments", "recipes",    "metrics"};
  if (!what.empty() && std::find(kinds.begin(), kinds.end(), what) == kinds.end())
    throw Misuse("list: unknown kind '" + what + "'" + nearest_names(what, kinds));
  if (what == "metrics") {
    print_metrics(markdown);
    return 0;
  }
  for (const auto& kind : kinds)
    if ((what.empty() && kind != "metrics") || what == kind) print(catalogue(kind), markdown);
  return 0;
}

const bool registered = add(CommandEntry{
    .text = {.name = "list",
             .summary = "what is registered: methods, features, projections, inputs, experiments, recipes, metrics",
             .formula = "list [methods|features|deterministic-features|projections|inputs|experiments|recipes|metrics] "
                        "[--markdown]"},
    .run = run,
    .examples = {"list methods", "list metrics"},
    .names = {"kinds"}});

}  // namespace
}  // namespace attnbench::list_command
