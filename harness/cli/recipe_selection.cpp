#include "harness/cli/recipe_selection.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace attnbench {

namespace {

const std::vector<std::string> columns_of_specs{"method", "input", "experiment"};

}  // namespace

Selection selection_of(const DataTable& table, const std::vector<std::string>& own) {
  Selection selection{.runs = table.texts("run")};
  for (const std::string& key : table.keys()) {
    if (key == "run" || std::find(own.begin(), own.end(), key) != own.end()) continue;
    const DataValue& value = table.at(key);
    const auto* list = value.as<DataValue::List>();
    AnyOf wanted{std::vector<std::string>{}};
    const bool spec = std::find(columns_of_specs.begin(), columns_of_specs.end(), key) != columns_of_specs.end();
    for (const DataValue& one : list ? *list : DataValue::List{value}) {
      if (const auto* text = one.as<std::string>())
        wanted.values.emplace_back(*text);
      else if (spec || one.as<DataTable>() || one.as<DataValue::List>())
        table.refuse(key, fmt::format("is {}; expected {}", one.kind(),
                                      spec ? "a spec in quotes, such as \"performer:m=64\", or a list of them"
                                           : "a number, a string or a list of these"));
      else if (const auto* flag = one.as<bool>())
        // Columns of sizes are numbers; parameters are as a user writes them.
        key == "causal" ? wanted.values.emplace_back(static_cast<Index>(*flag))
                        : wanted.values.emplace_back(std::string(*flag ? "true" : "false"));
      else if (const auto* integer = one.as<Index>())
        wanted.values.emplace_back(*integer);
      else
        wanted.values.emplace_back(*one.as<double>());
    }
    if (wanted.values.empty()) table.refuse(key, "is an empty list; expected a value");
    selection.conditions.push_back({key, std::move(wanted)});
  }
  return selection;
}

}  // namespace attnbench
