#include "harness/cli/recipe_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "harness/cli/recipe_figure.hpp"
#include "harness/cli/recipe_statement.hpp"
#include "harness/cli/request.hpp"
#include "harness/core/file_bytes.hpp"
#include "harness/core/installed.hpp"
#include "harness/plugins/plugins.hpp"
#include "harness/store/text.hpp"

namespace attnbench {

namespace fs = std::filesystem;

namespace {

constexpr size_t most_axis_values = 100'000;  // of all runs: they are kept

DeclaredRun run_of(const DataTable& table) {
  std::vector<NamedOption> options;
  const auto own = [](const std::string& key) { return key == "name" || key == "heads" || key == "for"; };
  const bool every =
      table.find("replicates") && table.at("replicates").as<std::string>() && table.text("replicates") == "all";
  for (const std::string& key : table.keys()) {
    if ((own(key) && !(key == "heads" && !table.at(key).as<std::string>())) || (every && key == "replicates")) continue;
    const DataValue& value = table.at(key);
    const auto* list = value.as<DataValue::List>();
    // Axes may be left out at a size. A size or an input that is left out would be the default's, and nobody asked for
    // it.
    if (list && list->empty() && key != "sweep" && key != "zip")
      table.refuse(key, "is an empty list; expected a value, or leave it out");
    for (const DataValue& one : list ? *list : DataValue::List{value}) {
      if (one.as<DataTable>() || one.as<DataValue::List>())
        table.refuse(key, fmt::format("is {}; expected a value as on the command line", one.kind()));
      options.emplace_back(key, one.text(","));
    }
  }
  DeclaredRun run{.place = table.place(), .name = table.text_or("name", ""), .request = {}, .every_replicate = every};
  if (table.find("heads") && table.at("heads").as<std::string>()) {
    run.heads = table.text("heads");
    if (table.find("input")) table.refuse("input", "and 'heads' exclude each other; keep one");
    if (!catalogue(HeadsEntry::plural).has(run.heads))
      table.refuse("heads", fmt::format("is '{}'{}", run.heads,
                                        nearest_names(run.heads, catalogue(HeadsEntry::plural).names())));
  }
  try {
    run.request = parse_recipe_run(options);
  } catch (const Misuse& misuse) {
    table.refuse(misuse.what());
  }
  if (!run.heads.empty()) run.request.inputs.clear();
  return run;
}

DeclaredRecipe declared(const DataTable& file, RecipeSize size) {
  const RecipeValues values = values_at(file, size);
  DeclaredRecipe recipe;
  if (file.find("input_names")) {
    const DataTable names = file.table("input_names");
    for (const auto& input : names.keys()) {
      try {
        recipe.input_names[Params("inputs", input).spec()] = names.text(input);
      } catch (const Misuse& misuse) {
        names.refuse(fmt::format("input_names: {}", misuse.what()));
      }
    }
  }
  if (file.find("headline")) {
    const DataTable headline = file.table("headline");
    headline.require_known("a headline", {"place", "question"});
    recipe.headline = {static_cast<int>(std::clamp(headline.number("place"), 0.0, 1e6)), headline.text("question")};
  }
  size_t axis_values = 0;
  for (const DataTable& runs : file.tables("runs"))
    for_each(runs, values, ",", [&](const DataTable& run, const RecipeValues&) {
      recipe.runs.push_back(run_of(run));
      for (const Axis& axis : recipe.runs.back().request.sweep) axis_values += axis.values.size();
      if (axis_values > most_axis_values)
        run.refuse(
            fmt::format("{} values on the axes of all runs; expected at most {}", axis_values, most_axis_values));
    });
  if (recipe.runs.empty()) file.refuse("'runs' is missing or empty; expected one at least");
  for (const DataTable& figures : file.tables("figures"))
    for_each(figures, values, ", ", [&](const DataTable& figure, const RecipeValues& here) {
      recipe.figures.push_back(figure_of(figure, here));
    });
  for (const DataTable& statements : file.tables("statements"))
    for_each(statements, values, ", ", [&](const DataTable& statement, const RecipeValues& here) {
      recipe.statements.push_back(statement_of(statement, here));
    });
  for (size_t i = 0; i < recipe.figures.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (recipe.figures[i].name == recipe.figures[j].name)
        throw Misuse(fmt::format("{}: the figure '{}' exists already; give it another name", recipe.figures[i].place,
                                 recipe.figures[i].name));
  for (size_t i = 0; i < recipe.statements.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (recipe.statements[i].statement.text == recipe.statements[j].statement.text)
        throw Misuse(fmt::format("{}: this statement exists already; change its text", recipe.statements[i].place));
  return recipe;
}

std::string read(const fs::path& file) {
  std::error_code none;
  if (auto text = file_bytes(file)) return std::move(*text);
  throw Misuse(fmt::format("{}: {}; expected a recipe file (docs/sharing.md)", file.string(),
                           fs::exists(file, none) ? "it cannot be read" : "there is no such file"));
}

// The recipe of a table. Whether its runs, figures and statements can be read shows when a size is written.
RecipeEntry entry_of(const DataTable& table, const std::string& file) {
  table.require_known("a recipe", {"name", "title", "question", "reference", "headline", "sizes", "input_names", "runs",
                                   "figures", "statements"});
  const std::string name = table.text("name");
  if (!is_file_name(name))
    table.refuse("name",
                 fmt::format("is '{}'; expected letters, digits, '-' and '_', such as \"sharper-heads\"", name));
  return {.text = {.name = name,
                   .summary = table.text("title"),
                   .formula = table.text("question"),
                   .reference = table.text_or("reference", "none")},
          .write = [table](Recipe& recipe) { declare(declared(table, recipe.size()), recipe); },
          .file = file};
}

bool is_json(const std::string& file) { return file.ends_with(".json"); }

// The recipes of the tree that are files.
const bool filled = Registry<RecipeEntry>::instance().fill_by([] {
  std::vector<fs::path> files;
  std::error_code none;
  for (const auto& one : fs::directory_iterator(source_tree() / "experiments/recipes", none))
    if (one.path().extension() == ".toml") files.push_back(one.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    RecipeEntry entry = entry_of(parse_toml(read(file), file.filename().string()), "");
    Registry<RecipeEntry>::instance().add(std::move(entry), {file.string()});
  }
});

// A text of several lines in JSON is a list of them.
DataTable with_long_texts(const DataTable& table) {
  static const std::vector<std::string> texts{"text",       "title",     "caption",   "question",
                                              "reference",  "source",    "quotation", "paraphrase",
                                              "definition", "threshold", "because"};
  DataTable all = table;
  for (const auto& key : table.keys()) {
    DataValue value = table.at(key);
    if (std::find(texts.begin(), texts.end(), key) != texts.end()) {
      value.content = table.text(key);
    } else if (const auto* inner = value.as<DataTable>()) {
      value.content = with_long_texts(*inner);
    } else if (auto* list = std::get_if<DataValue::List>(&value.content)) {
      for (DataValue& one : *list)
        if (const auto* element = one.as<DataTable>()) one.content = with_long_texts(*element);
    }
    all.set(key, std::move(value));
  }
  return all;
}

}  // namespace

RecipeEntry parse_recipe(std::string_view text, const std::string& file) {
  const DataTable table = is_json(file) ? parse_json(text, file) : parse_toml(text, file);
  RecipeEntry entry = entry_of(table, file);
  for (const RecipeSize size : {RecipeSize::smoke, RecipeSize::quick, RecipeSize::full}) declared(table, size);
  return entry;
}

std::string recipe_in_toml(const fs::path& file) {
  return toml_of(with_long_texts(parse_json(read(file), file.string())));
}

bool names_recipe_file(const std::string& word) { return word.ends_with(".toml") || is_json(word); }

std::string add_recipe(const fs::path& file) {
  std::error_code none;
  const fs::path found = fs::weakly_canonical(file, none);
  RecipeEntry entry = parse_recipe(read(file), file.string());
  const std::string name = entry.text.name;
  const auto names = catalogue(RecipeEntry::plural).names();
  if (std::find(names.begin(), names.end(), name) != names.end()) {
    const std::string& other = catalogue(RecipeEntry::plural).source_files(name).front();
    if (other == found.string()) return name;
    throw Misuse(fmt::format("{}: the name '{}' is taken by {}; give the recipe another", file.string(), name, other));
  }
  if (is_json(file.string()))
    std::cerr << fmt::format(
        "{}: recipes are TOML files from now on, and the next version will not read JSON; attnbench new recipe --from "
        "{} writes it in TOML\n",
        file.string(), shell_quoted(file.string()));
  Registry<RecipeEntry>::instance().add(std::move(entry), {found.string()});
  return name;
}

void add_recipes_of_plugins() {
  for (const fs::path& file : recipes_of_plugins()) add_recipe(file);
}

}  // namespace attnbench
