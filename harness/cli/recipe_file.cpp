#include "harness/cli/recipe_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>

#include "harness/cli/request.hpp"
#include "harness/core/file_bytes.hpp"
#include "harness/plugins/plugins.hpp"
#include "harness/runner/declared_recipe.hpp"
#include "harness/runner/json_file.hpp"

namespace attnbench {

namespace fs = std::filesystem;

namespace {

constexpr std::array<const char*, 3> size_names{"smoke", "quick", "full"};
// A value of 'sizes' is inserted wherever a text names it, and the axes of all runs are kept.
constexpr size_t longest_value = 1'000, most_axis_values = 100'000;

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 100 && std::isalnum(static_cast<unsigned char>(text[0])) &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
         });
}

// A name in braces: a letter or _, then letters, digits or _. Other braces are text.
bool is_identifier(std::string_view text) {
  return !text.empty() && !std::isdigit(static_cast<unsigned char>(text[0])) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; });
}

// The values of 'sizes' at one size, by name.
using Sized = std::map<std::string, JsonValue>;

Sized sized(const JsonObject& file, RecipeSize size) {
  Sized values;
  if (!file.find("sizes")) return values;
  const JsonObject sizes = file.object("sizes");
  for (const std::string& name : sizes.keys()) {
    if (!is_identifier(name)) sizes.refuse(name, "is not a name; expected letters, digits and _");
    const JsonObject one = sizes.object(name);
    one.require_known("a size", {size_names.begin(), size_names.end()});
    one.at("smoke");
    one.at("quick");
    const bool as_quick = size == RecipeSize::full && !one.find("full");
    const JsonValue& value = one.at(as_quick ? "quick" : size_names[static_cast<size_t>(size)]);
    const auto* list = value.as<JsonValue::List>();
    const auto plain = [](const JsonValue& v) { return !v.as<JsonValue::List>() && !v.as<JsonObject>(); };
    if (list ? !std::all_of(list->begin(), list->end(), plain) : !plain(value))
      one.refuse(fmt::format("'{}' is {}; expected a number, a string or a list of these", name, value.kind()));
    if (value.text(", ").size() > longest_value)
      one.refuse(fmt::format("'{}' is longer than {} characters", name, longest_value));
    values.emplace(name, value);
  }
  return values;
}

// Puts the values of one size in place of their names in braces, in a part of the file.
class Inserting {
 public:
  Inserting(const Sized& values, std::string separator) : values_(values), separator_(std::move(separator)) {}

  JsonObject operator()(const JsonObject& table) const {
    JsonObject all = table;
    for (const std::string& key : table.keys())
      if (key != "quotation" && key != "source" && key != "paraphrase")  // the words of others
        all.set(key, inserted(table, key, *table.find(key)));
    return all;
  }

 private:
  JsonValue inserted(const JsonObject& table, const std::string& key, const JsonValue& value) const {
    JsonValue result = value;
    if (const auto* text = value.as<std::string>()) {
      result.content = of_text(table, key, *text);
    } else if (const auto* list = value.as<JsonValue::List>()) {
      JsonValue::List all;
      for (const JsonValue& element : *list) {
        const JsonValue one = inserted(table, key, element);
        const auto* several = element.as<std::string>() ? one.as<JsonValue::List>() : nullptr;
        if (several)  // a list named in a list adds its elements
          all.insert(all.end(), several->begin(), several->end());
        else
          all.push_back(one);
      }
      result.content = std::move(all);
    } else if (const auto* inner = value.as<JsonObject>()) {
      result.content = (*this)(*inner);
    }
    return result;
  }

  // A text that is one name alone becomes the value itself, a number or a list.
  decltype(JsonValue::content) of_text(const JsonObject& table, const std::string& key, const std::string& text) const {
    std::string all;
    for (size_t place = 0; place < text.size();) {
      const size_t open = text.find('{', place),
                   close = open == text.npos ? text.npos : text.find_first_of("{}", open + 1);
      const bool braces = close != text.npos && text[close] == '}';
      const std::string name = braces ? text.substr(open + 1, close - open - 1) : "";
      if (!is_identifier(name)) {
        const size_t end = open == text.npos ? text.size() : open + 1;
        all += text.substr(place, end - place);
        place = end;
        continue;
      }
      const auto value = values_.find(name);
      if (value == values_.end()) {
        std::vector<std::string> names;
        for (const auto& [known, ignored] : values_) names.push_back(known);
        table.refuse(key, fmt::format("names {{{}}}, which 'sizes' does not have{}", name, nearest_names(name, names)));
      }
      if (open == 0 && close + 1 == text.size()) return value->second.content;
      all += text.substr(place, open - place) + value->second.text(separator_);
      place = close + 1;
    }
    return all;
  }

  const Sized& values_;
  std::string separator_;
};

const std::vector<std::string> columns_of_specs{"method", "input", "experiment"};

// The columns of a selection with their values. Keys in `own` are not columns.
Selection selection_of(const JsonObject& table, const std::vector<std::string>& own) {
  Selection selection{.run = table.text_or("run", "")};
  for (const std::string& key : table.keys()) {
    if (key == "run" || std::find(own.begin(), own.end(), key) != own.end()) continue;
    const JsonValue& value = table.at(key);
    const auto* list = value.as<JsonValue::List>();
    AnyOf wanted{std::vector<std::string>{}};
    const bool spec = std::find(columns_of_specs.begin(), columns_of_specs.end(), key) != columns_of_specs.end();
    for (const JsonValue& one : list ? *list : JsonValue::List{value}) {
      if (const auto* text = one.as<std::string>())
        wanted.values.emplace_back(*text);
      else if (spec || one.as<JsonObject>() || one.as<JsonValue::List>())
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

DeclaredRun run_of(const JsonObject& table) {
  std::vector<NamedOption> options;
  for (const std::string& key : table.keys()) {
    if (key == "name") continue;
    const JsonValue& value = table.at(key);
    const auto* list = value.as<JsonValue::List>();
    for (const JsonValue& one : list ? *list : JsonValue::List{value}) {
      if (one.as<JsonObject>() || one.as<JsonValue::List>())
        table.refuse(key, fmt::format("is {}; expected a value as on the command line", one.kind()));
      options.emplace_back(key, one.text(","));
    }
  }
  const std::string name = table.text_or("name", "");
  try {
    return {table.place(), name, parse_recipe_run(options)};
  } catch (const Misuse& misuse) {
    table.refuse(misuse.what());
  }
}

// The fields of a panel by the keys of docs/figures.md.
Panel panel_of(const JsonObject& table) {
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
  std::vector<std::string> known{"cells", "first_index", "range"};
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
  const auto one_of = [&](const char* key, const std::string& value, const std::vector<std::string>& choices) {
    if (std::find(choices.begin(), choices.end(), value) == choices.end())
      table.refuse(key, fmt::format("is '{}'{}", value, nearest_names(value, choices)));
  };
  one_of("kind", panel.kind, {"curve", "profile", "histogram", "image", "map", "table", "trade"});
  one_of("interval", panel.interval, {"mean", "median"});
  one_of("x_scale", panel.x_scale, {"linear", "log2", "log10"});
  one_of("y_scale", panel.y_scale, {"linear", "log2", "log10"});
  if ((panel.kind == "curve" || panel.kind == "map") && panel.x.empty())
    table.refuse("'x' is missing; expected a size or a parameter, such as \"x\": \"n\"");
  if (!panel.range.empty() && panel.range.size() != 2) table.refuse("range", "needs two numbers, such as [0, 1]");
  return panel;
}

DeclaredFigure figure_of(const JsonObject& table) {
  table.require_known("a figure", {"name", "title", "caption", "panels"});
  DeclaredFigure figure{table.place(), table.text("name"), table.text("title"), table.text("caption"), {}};
  if (!is_name(figure.name)) table.refuse("name", "is not a name; expected letters, digits, '-' and '_'");
  for (const JsonObject& panel : table.objects("panels"))
    figure.panels.push_back(
        {panel.place(), panel_of(panel), panel.find("cells") ? selection_of(panel.object("cells"), {}) : Selection{}});
  if (figure.panels.empty()) table.refuse("'panels' is missing or empty; expected one at least");
  return figure;
}

// Exactly one of the rules.
DeclaredRule rule_of(const JsonObject& table) {
  using Kind = DeclaredRule::Kind;
  static const std::vector<std::pair<std::string, Kind>> kinds{
      {"below", Kind::below},       {"above", Kind::above},           {"between", Kind::between},
      {"contains", Kind::contains}, {"some_below", Kind::some_below}, {"at_most", Kind::at_most},
      {"report", Kind::report}};
  std::string key, all;
  DeclaredRule rule;
  for (const auto& [name, kind] : kinds) {
    all += (all.empty() ? "" : ", ") + name;
    if (!table.find(name)) continue;
    if (!key.empty()) table.refuse(fmt::format("has both '{}' and '{}'; expected one rule: keep one", key, name));
    key = name;
    rule.kind = kind;
  }
  if (key.empty()) table.refuse("a statement without a rule; expected one of " + all);
  if (table.find("within") && rule.kind != Kind::contains) table.refuse("within", "goes with 'contains'");
  switch (rule.kind) {
    case Kind::between: {
      const auto bounds = table.numbers(key);
      if (bounds.size() != 2 || !(bounds[0] < bounds[1]))
        table.refuse(key, "needs the lower and the upper bound, such as [0.9, 1.1]");
      rule.bound = bounds[0];
      rule.high = bounds[1];
      break;
    }
    case Kind::contains:
      rule.bound = table.number(key);
      rule.resolution = table.number("within");
      if (!(rule.resolution > 0))
        table.refuse("within", "is not above 0; expected the half width that an interval may have");
      break;
    case Kind::report:
      rule.report = table.numbers(key);
      break;
    case Kind::at_most:
      if (table.at(key).as<JsonObject>()) {
        const JsonObject bound = table.object(key);
        bound.require_known("a bound", {"metric"});
        rule.bound_metric = bound.text("metric");
        break;
      }
      [[fallthrough]];
    default:
      rule.bound = table.number(key);
  }
  return rule;
}

Ruling ruling_of(const JsonObject& table, bool reports) {
  static const std::vector<std::pair<std::string, Ruling>> rulings{
      {"holds", Ruling::holds}, {"refuted", Ruling::refuted}, {"open", Ruling::open}, {"depends", Ruling::depends}};
  if (reports) {
    if (table.find("expected"))
      table.refuse("expected", "belongs to a rule that decides, and 'report' decides nothing; leave it out");
    return Ruling::measured;
  }
  const std::string given = table.text_or("expected", "holds");
  std::vector<std::string> names;
  for (const auto& [name, ruling] : rulings) {
    if (name == given) return ruling;
    names.push_back(name);
  }
  table.refuse("expected", fmt::format("is '{}'{}", given, nearest_names(given, names)));
}

Taken taken_of(const JsonObject& table) {
  static const std::vector<std::pair<std::string, Taken>> all{{"median", Taken::median},
                                                              {"median of turns", Taken::median_of_turns},
                                                              {"mean", Taken::mean},
                                                              {"exact", Taken::exact}};
  const std::string given = table.text_or("take", "median");
  std::vector<std::string> names;
  for (const auto& [name, taken] : all) {
    if (name == given) return taken;
    names.push_back(name);
  }
  table.refuse("take", fmt::format("is '{}'{}", given, nearest_names(given, names)));
}

DeclaredStatement statement_of(const JsonObject& table) {
  table.require_known("a statement", {"text",    "source",   "quotation", "paraphrase",   "definition", "threshold",
                                      "because", "expected", "metric",    "take",         "of",         "over",
                                      "each",    "where",    "any",       "equal_within", "below",      "above",
                                      "between", "contains", "within",    "some_below",   "at_most",    "report"});
  DeclaredStatement all{
      .place = table.place(), .statement = {}, .metric = table.text("metric"), .taken = taken_of(table)};
  all.rule = rule_of(table);
  using Kind = DeclaredRule::Kind;
  all.statement = {.text = table.text("text"),
                   .source = table.text_or("source", ""),
                   .quotation = table.text_or("quotation", ""),
                   .paraphrase = table.text_or("paraphrase", ""),
                   .definition = table.text("definition"),
                   .threshold = table.text("threshold"),
                   .expected = ruling_of(table, all.rule.kind == Kind::report),
                   .because = table.text("because")};
  if (all.statement.source.empty() != (all.statement.quotation.empty() && all.statement.paraphrase.empty()))
    table.refuse(
        "a source and its words belong together: expected 'source' with 'quotation' (verbatim) or 'paraphrase', or "
        "none of them for a finding of your own");
  if (table.find("of")) all.of = selection_of(table.object("of"), {});
  if (table.find("over")) {
    const JsonObject over = table.object("over");
    all.over = selection_of(over, {"metric"});
    all.over_metric = over.text_or("metric", "");
  }
  all.each = table.texts("each");
  all.where = table.texts("where");
  all.any = table.flag_or("any", false);
  all.equal_within = table.number_or("equal_within", 1);
  if (all.rule.kind == Kind::at_most) {
    for (const char* key : {"over", "each", "take", "where"})
      if (table.find(key)) table.refuse(key, "does not go with 'at_most', which judges every number of every cell");
    all.each = each_cell;
  }
  const bool regions = all.rule.kind == Kind::below || all.rule.kind == Kind::above;
  if (!all.where.empty() && !regions) table.refuse("where", "goes with 'below' and 'above'");
  for (const char* key : {"any", "equal_within"})
    if (table.find(key) && all.where.empty()) table.refuse(key, "goes with 'where'");
  if (all.equal_within < 1) table.refuse("equal_within", "is below 1; expected a factor such as 1.1");
  if (all.each == each_cell && all.over && (!all.over->run.empty() || !all.over->conditions.empty()))
    table.refuse("over",
                 "names cells, but \"each\": \"cell\" divides by another metric of the same cell; expected "
                 "{\"metric\": \"...\"}, or the columns that tell comparisons apart in 'each'");
  if (all.taken == Taken::median_of_turns && !all.over_metric.empty() && all.over_metric != all.metric)
    table.refuse("over", "has another metric, but turns are divided block by block by those of the same metric");
  return all;
}

DeclaredRecipe declared(const JsonObject& file, RecipeSize size) {
  const Sized values = sized(file, size);
  const Inserting in_options(values, ","), in_texts(values, ", ");
  DeclaredRecipe recipe;
  size_t axis_values = 0;
  for (const JsonObject& run : file.objects("runs")) {
    recipe.runs.push_back(run_of(in_options(run)));
    for (const Axis& axis : recipe.runs.back().request.sweep) axis_values += axis.values.size();
    if (axis_values > most_axis_values)
      run.refuse(fmt::format("{} values on the axes of all runs; expected at most {}", axis_values, most_axis_values));
  }
  if (recipe.runs.empty()) file.refuse("'runs' is missing or empty; expected one at least");
  for (const JsonObject& figure : file.objects("figures")) recipe.figures.push_back(figure_of(in_texts(figure)));
  for (const JsonObject& statement : file.objects("statements"))
    recipe.statements.push_back(statement_of(in_texts(statement)));
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

}  // namespace

RecipeEntry parse_recipe(std::string_view text, const std::string& file) {
  const JsonObject table = parse_json(text, file);
  table.require_known("a recipe", {"name", "title", "question", "reference", "sizes", "runs", "figures", "statements"});
  const std::string name = table.text("name");
  if (!is_name(name))
    table.refuse("name",
                 fmt::format("is '{}'; expected letters, digits, '-' and '_', such as \"sharper-heads\"", name));
  std::array<std::shared_ptr<const DeclaredRecipe>, 3> by_size;
  for (const RecipeSize size : {RecipeSize::smoke, RecipeSize::quick, RecipeSize::full})
    by_size[static_cast<size_t>(size)] = std::make_shared<const DeclaredRecipe>(declared(table, size));
  return {.text = {.name = name,
                   .summary = table.text("title"),
                   .formula = table.text("question"),
                   .reference = table.text_or("reference", "none")},
          .write = [by_size](Recipe& recipe) { declare(*by_size[static_cast<size_t>(recipe.size())], recipe); },
          .file = file};
}

bool names_recipe_file(const std::string& word) { return word.ends_with(".json"); }

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
  Registry<RecipeEntry>::instance().add(std::move(entry), {found.string()});
  return name;
}

void add_recipes_of_plugins() {
  for (const fs::path& file : recipes_of_plugins()) add_recipe(file);
}

}  // namespace attnbench
