// attnbench list: prints the registered entries.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "harness/cli/command.hpp"

namespace attnbench::list_command {
namespace {

void print(const Catalogue& entries, bool markdown) {
  if (markdown) {
    std::cout << fmt::format("| {} | what it is | parameters | cost |\n|---|---|---|---|\n", entries.kind());
    for (const auto& name : entries.names()) {
      std::string parameters;
      const Params defaults(entries.plural(), name);
      for (const auto& p : defaults.declared())
        parameters += fmt::format("{}`{}={}`", parameters.empty() ? "" : " ", p.name, p.default_value);
      const auto& text = entries.description(name);
      std::cout << fmt::format("| `{}` | {} | {} | {} |\n", name, text.summary, parameters, text.cost);
    }
    return;
  }
  std::cout << entries.plural() << "\n";
  const auto names = entries.names();
  size_t width = 14;
  for (const auto& name : names) width = std::max(width, name.size());
  for (const auto& name : names)
    std::cout << fmt::format("  {:<{}}  {}\n", name, width, entries.description(name).summary);
}

int run(const std::vector<std::string>& arguments) {
  options::options_description visible("options");
  std::string what;
  bool markdown = false;
  visible.add_options()("what", options::value(&what),
                        "methods, features, deterministic-features, projections, inputs, experiments or recipes")(
      "markdown", options::bool_switch(&markdown), "as a table for a README");
  if (!parse_arguments("list", visible, arguments, {{"what", 1}})) return 0;
  const std::vector<std::string> kinds{"methods",     "features", "deterministic-features", "projections", "inputs",
                                       "experiments", "recipes"};
  if (!what.empty() && std::find(kinds.begin(), kinds.end(), what) == kinds.end())
    throw Misuse("list: unknown kind '" + what + "'" + nearest_names(what, kinds));
  for (const auto& kind : kinds)
    if (what.empty() || what == kind) print(catalogue(kind), markdown);
  return 0;
}

const bool registered = add(CommandEntry{
    .text = {.name = "list",
             .summary = "what is registered: methods, features, projections, inputs, experiments, recipes",
             .formula =
                 "list [methods|features|deterministic-features|projections|inputs|experiments|recipes] [--markdown]"},
    .run = run});

}  // namespace
}  // namespace attnbench::list_command
