#include "harness/runner/declared_recipe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "harness/experiment/experiment.hpp"
#include "harness/runner/match.hpp"
#include "harness/runner/numbers_function.hpp"
#include "harness/runner/reproduce.hpp"
#include "harness/store/text.hpp"

namespace attnbench {

namespace {

// Runs the action. Its Misuse, or std::logic_error of a selection, becomes a Misuse that names the place. A model that
// is not there is no mistake at that place.
template <class Action>
auto at(const std::string& place, Action&& action) {
  try {
    return action();
  } catch (const NotFetched&) {
    throw;
  } catch (const Misuse& misuse) {
    throw Misuse(fmt::format("{}: {}", place, on_one_line(misuse.what())));
  } catch (const std::logic_error& error) {
    throw Misuse(fmt::format("{}: {}", place, on_one_line(error.what())));
  }
}

using Runs = std::map<std::string, Cells>;

Cells selected(const Recipe& recipe, const Runs& runs, const Selection& selection) {
  Cells cells = selection.runs.empty() ? recipe.cells() : Cells();
  for (const auto& wanted : selection.runs) {
    const auto run = runs.find(wanted);
    if (run == runs.end()) {
      std::vector<std::string> names;
      for (const auto& [name, of_run] : runs) names.push_back(name);
      throw Misuse(names.empty() ? fmt::format("no run has the name '{}': this recipe names no run", wanted)
                                 : fmt::format("no run has the name '{}'{}", wanted, nearest_names(wanted, names)));
    }
    cells = cells + run->second;
  }
  return selection.conditions.empty() ? cells : cells.where(selection.conditions);
}

bool measures(const Cells& cells, const std::string& metric) {
  const auto all = cells.all();
  return std::all_of(all.begin(), all.end(), [&](const RecipeCell& cell) {
    const auto& metrics = find<ExperimentEntry>(cell.asked.experiment.name()).metrics;
    return std::any_of(metrics.begin(), metrics.end(), [&](const Metric& one) { return one.name == metric; });
  });
}

void require_metric(const Cells& cells, const std::string& metric) {
  std::set<std::string> experiments;
  for (const RecipeCell& cell : cells.all()) experiments.insert(cell.asked.experiment.name());
  for (const std::string& experiment : experiments) {
    std::vector<std::string> names;
    for (const Metric& known : find<ExperimentEntry>(experiment).metrics) names.push_back(known.name);
    if (std::find(names.begin(), names.end(), metric) == names.end())
      throw Misuse(fmt::format("{} measures no '{}'{}", experiment, metric, nearest_names(metric, names)));
  }
}

// A panel may draw cells of several experiments, of which one measures the metric.
void require_some_metric(const Cells& cells, const std::string& metric) {
  std::set<std::string> names;
  for (const RecipeCell& cell : cells.all())
    for (const Metric& known : find<ExperimentEntry>(cell.asked.experiment.name()).metrics) names.insert(known.name);
  if (!metric.empty() && !names.contains(metric)) require_metric(cells, metric);
}

// Puts the name of a part in place of {part}.
void insert_part(std::string& text, const std::string& part) {
  constexpr std::string_view name = "{part}";
  if (const size_t place = text.find(name); place != text.npos) text.replace(place, name.size(), part);
}

struct AxisWords {
  std::string label, scale;
};

// The words and the scale of an axis for a size or a parameter. Budgets have a log2 scale because they double.
AxisWords words_of_column(const std::string& column, const Cells& cells) {
  static const std::map<std::string, AxisWords> sizes{{"n", {"sequence length n", "log2"}},
                                                      {"d", {"key size d", "log2"}},
                                                      {"logit_scale", {"factor of the logits", "log2"}}};
  if (const auto size = sizes.find(column); size != sizes.end()) return size->second;
  for (const RecipeCell& cell : cells.all())
    for (const Params* params : {&cell.asked.method, &cell.asked.input, &cell.asked.experiment})
      for (const Parameter& parameter : params->declared())
        if (parameter.name == column) return {column, parameter.budget ? "log2" : "linear"};
  return {column, "linear"};
}

// Adds to a panel the words and scales of axes that it leaves out, and medians for times.
void add_defaults(Panel& panel, const std::set<std::string>& given) {
  const auto set = [&](const char* field, std::string& to, const std::string& otherwise) {
    if (!given.contains(field)) to = otherwise;
  };
  if (!given.contains("x") && (panel.kind == "table" || panel.kind == "trade")) panel.x = budget_names();
  if (panel.kind == "curve" || panel.kind == "map") {
    const AxisWords x = words_of_column(panel.x[0], panel.cells);
    set("x_label", panel.x_label, x.label);
    set("x_scale", panel.x_scale, x.scale);
  }
  for (const RecipeCell& cell : panel.cells.all())
    for (const Metric& metric : find<ExperimentEntry>(cell.asked.experiment.name()).metrics) {
      if (metric.name != panel.y) continue;
      if (panel.kind != "image") set("y_label", panel.y_label, metric.label.empty() ? metric.text : metric.label);
      if (panel.kind != "image" && panel.kind != "histogram") set("y_scale", panel.y_scale, metric.scale);
      if (cell.asked.timing()) set("interval", panel.interval, "median");
      return;
    }
}

void draw(const DeclaredFigure& figure, Recipe& recipe, const Runs& runs) {
  std::vector<Panel> panels;
  Cells drawn;
  for (const DeclaredPanel& declared : figure.panels)
    at(declared.place, [&] {
      const Cells all = selected(recipe, runs, declared.cells);
      for (const std::string& metric : {declared.panel.y, declared.panel.theory, declared.panel.x_metric,
                                        declared.panel.area, declared.panel.bound_x})
        require_some_metric(all, metric);
      for (const auto* columns : {&declared.panel.series, &declared.panel.y_axis})
        for (const std::string& column : *columns) all.require_any({column});
      for (const Cells::Part& part : all.by(declared.each)) {
        Panel panel = declared.panel;
        panel.cells = part.cells;
        for (std::string* text : {&panel.title, &panel.y_label}) insert_part(*text, part.name);
        add_defaults(panel, declared.given);
        drawn = drawn + panel.cells;
        panels.push_back(std::move(panel));
      }
    });
  const std::string caption = fmt::format("{} {}.", figure.caption, settings_in_words(drawn));
  at(figure.place, [&] { recipe.figure(figure.name, figure.title, caption, panels); });
}

std::string name_of(const Cell& cell) {
  const Shape& shape = cell.problem.shape;
  return fmt::format("{} on {}, {}d = {}", cell.method.spec(), cell.input.spec(),
                     shape.nk > 1 ? fmt::format("n = {}, ", shape.nk) : "", shape.d);
}

// The cells of one comparison. `with` has those of each selection that the value names.
struct ComparedCells {
  Cells of;
  std::map<std::string, Cells> with = {};

  const Cells& named(const std::string& selection) const { return selection.empty() ? of : with.at(selection); }
};

// The cells that agree with the part in every column that they have and the selection does not set itself.
Cells beside(Cells cells, const Selection& selection, const std::vector<Condition>& shared) {
  for (const Condition& condition : shared) {
    // A list leaves the choice to the part.
    const bool set = std::any_of(selection.conditions.begin(), selection.conditions.end(), [&](const Condition& own) {
      return own.column == condition.column && own.wanted.values.size() == 1;
    });
    if (!set && cells.has(condition.column)) cells = cells.where({condition});
  }
  return cells;
}

// The conditions of `of` that another selection shares unless it says otherwise: the sizes and the input.
std::vector<Condition> shared_with(const Selection& other, const Selection& of) {
  static const std::set<std::string> shared{"n", "d", "input", "causal", "logit_scale"};
  const bool own_input = std::any_of(other.conditions.begin(), other.conditions.end(),
                                     [](const Condition& own) { return own.column.starts_with("input"); });
  std::vector<Condition> all;
  for (const Condition& condition : of.conditions)
    if (shared.contains(condition.column) && other.runs.empty() && !(condition.column == "input" && own_input))
      all.push_back(condition);
  return all;
}

// The unit of a metric of these cells; nothing where they have none.
std::optional<std::string> unit_of(const Cells& cells, const std::string& metric) {
  for (const RecipeCell& cell : cells.all())
    for (const Metric& one : find<ExperimentEntry>(cell.asked.experiment.name()).metrics)
      if (one.name == metric) return one.unit;
  return std::nullopt;
}

// Refuses a quotient of two metrics that have different units.
void require_same_unit(const Expression& expression, const ComparedCells& cells) {
  const auto& names = expression.references();
  const auto first = unit_of(cells.named(names.front().selection), names.front().name),
             last = unit_of(cells.named(names.back().selection), names.back().name);
  if (first && last && *first != *last)
    throw Misuse(fmt::format("{} has the unit {} and {} the unit {}; expected one unit, or 'value' with the arithmetic",
                             names.front().name, *first, names.back().name, *last));
}

void require_one(const Cells& cells, const std::string& which) {
  if (cells.size() == 1) return;
  const auto all = cells.all();
  throw Misuse(fmt::format(
      "'{}' leaves {} cells for one comparison, such as {}, and {}; expected one: name in 'each' the column in which "
      "they differ, set it in '{}', or take least(), greatest(), mean() or sum() over them",
      which, all.size(), name_of(all[0].asked), name_of(all[1].asked), which));
}

// Checks the names of an expression: selections, and metrics or sizes of their cells.
void require_names(const Expression& expression, const ComparedCells& cells) {
  for (const auto& reference : expression.references()) {
    if (!reference.selection.empty() && !cells.with.contains(reference.selection)) {
      std::vector<std::string> names;
      for (const auto& [name, ignored] : cells.with) names.push_back(name);
      throw Misuse(fmt::format("no selection has the name '{}'{}", reference.selection,
                               nearest_names(reference.selection, names)));
    }
    const Cells& named = cells.named(reference.selection);
    if (!measures(named, reference.name)) {
      const auto each = named.one_by_one();
      const bool has_size = reference.several_cells
                                ? std::all_of(each.begin(), each.end(),
                                              [&](const Cells& one) { return one.number(reference.name).has_value(); })
                                : named.number(reference.name).has_value();
      if (has_size) continue;
      require_metric(named, reference.name);
    }
    if (!reference.several_cells || reference.elements)
      require_one(named, reference.selection.empty() ? "of" : reference.selection);
  }
}

// The numbers of a reference in a replicate's array, by place.
Samples elements_of(const Cells& one, const std::string& metric, Index length, Index replicate) {
  Samples all;
  const auto arrays = one.arrays(metric, static_cast<size_t>(length));
  if (replicate < std::ssize(arrays))
    for (const double element : arrays[static_cast<size_t>(replicate)]) all[std::ssize(all)] = element;
  return all;
}

// Each element of the arrays of a cell, by replicate.
std::vector<Samples> every_element(const Cells& one, const std::string& metric) {
  std::vector<Samples> all;
  const auto arrays = one.arrays(metric, 0);
  for (size_t replicate = 0; replicate < arrays.size(); ++replicate) {
    all.resize(std::max(all.size(), arrays[replicate].size()));
    for (size_t i = 0; i < arrays[replicate].size(); ++i) all[i][static_cast<Index>(replicate)] = arrays[replicate][i];
  }
  return all;
}

// How the numbers of an expression are read from these cells. replicate: of arrays; -1: no arrays.
Expression::Read reading(const DeclaredNumbers& declared, Take take, const ComparedCells& cells, Index replicate) {
  return [=, length = declared.elements](const auto& reference) -> std::vector<Samples> {
    if (reference.elements) return every_element(cells.named(reference.selection), reference.name);
    std::vector<Samples> all;
    const Cells& named = cells.named(reference.selection);
    if (!reference.several_cells && !measures(named, reference.name)) return {{{0, *named.number(reference.name)}}};
    for (const Cells& one : named.one_by_one()) {
      if (!measures(one, reference.name))
        all.push_back({{0, *one.number(reference.name)}});
      else if (replicate >= 0)
        all.push_back(elements_of(one, reference.name, length, replicate));
      else if (reference.element)
        all.push_back(one.element(reference.name, *reference.element));
      else
        all.push_back(take == Take::exact ? one.scalar(reference.name) : samples_of(one, reference.name));
    }
    return all;
  };
}

// "a, b" of what is not empty.
std::string joined(const std::string& a, const std::string& b) {
  return a.empty() || b.empty() ? a + b : fmt::format("{}, {}", a, b);
}

// Whether a timed cell has the metric for each block of turns.
bool is_by_block(const RecipeCell& cell, const std::string& metric) {
  const auto& all = find<ExperimentEntry>(cell.asked.experiment.name()).metrics;
  return std::any_of(all.begin(), all.end(), [&](const Metric& one) { return one.name == metric && one.by_block; });
}

// Adds the comparisons of one part of a statement, planned before anything runs.
class Plan {
 public:
  Plan(const DeclaredNumbers& declared, const Recipe& recipe, const Runs& runs, Judgement& to)
      : declared_(declared), to_(to), of_(selected(recipe, runs, declared.of)) {
    for (const auto& [name, selection] : declared.with) with_[name] = selected(recipe, runs, selection);
  }

  void add() {
    if (!declared_.code.empty()) return add_numbers_of_code();
    std::vector<std::string> columns = declared_.where;
    const bool regions = std::erase(columns, "part") > 0;
    for (Cells::Part& region : of_.by(columns)) {
      if (regions) region.name = joined(declared_.name, region.name);
      for (Cells::Part& part : parts_of(region.cells)) {
        if (part.name == region.name) part.name.clear();
        if (!regions) part.name = joined(declared_.name, part.name);
        add(region, part);
      }
    }
  }

  std::vector<Curve> curves() const {
    require_metric(of_, declared_.metric);
    for (const RecipeCell& cell : of_.all())
      if (!is_by_block(cell, declared_.metric))
        throw Misuse(
            fmt::format("'grows' judges times, and {} is no time of turns; for its growth write value = "
                        "\"exponent({}, n)\" with take and between",
                        declared_.metric, declared_.metric));
    std::vector<Curve> all;
    for (const Cells::Part& part : of_.by(declared_.each)) {
      std::set<Index> lengths;
      for (const RecipeCell& cell : part.cells.all()) lengths.insert(cell.asked.problem.shape.nk);
      if (lengths.size() < 2)
        throw Misuse(fmt::format("'grows' compares lengths, and {} has n = {} alone; expected two at least",
                                 part.name.empty() ? "the selection" : part.name, *lengths.begin()));
      all.push_back({joined(declared_.name, part.name), part.cells});
    }
    return all;
  }

  // "mass_recall / random.mass_recall; mass_recall is the weight kept": for a statement that says no more.
  std::string words_of_value() const {
    if (!declared_.code.empty()) return find<NumbersFunction>(declared_.code).text.summary;
    if (!declared_.value) return declared_.metric;
    std::string all = declared_.value->text();
    std::set<std::string> said;
    for (const auto& reference : declared_.value->references())
      for (const RecipeCell& cell : of_.all())
        for (const Metric& metric : find<ExperimentEntry>(cell.asked.experiment.name()).metrics)
          if (reference.name == metric.name && said.insert(metric.name).second)
            all += fmt::format("; {} is {}", metric.name, metric.text);
    return all;
  }

 private:
  void add_numbers_of_code() {
    to_.by_code = true;
    NumbersFunction::NamedCells cells = with_;
    cells[""] = of_;
    for (const auto& [name, of_name] : cells) to_.cells = to_.cells + of_name;
    for (Number& one : find<NumbersFunction>(declared_.code).plan(cells)) to_.numbers.push_back(std::move(one));
  }

  std::vector<Cells::Part> parts_of(const Cells& region) const {
    if (declared_.each != each_cell) return region.by(declared_.each);
    std::vector<Cells::Part> all;
    for (const Cells& cell : region.one_by_one())
      all.push_back({.name = name_of(cell.all().front().asked), .shared = {}, .coordinate = {}, .cells = cell});
    return all;
  }

  void add(const Cells::Part& region, const Cells::Part& part) {
    ComparedCells cells{part.cells};
    for (const auto& [name, all] : with_) {
      const Selection& selection = declared_.with.at(name);
      cells.with[name] =
          beside(beside(beside(all, selection, shared_with(selection, declared_.of)), selection, region.shared),
                 selection, part.shared);
    }
    Number one{.what = part.name, .region = region.name, .coordinate = region.coordinate, .take = declared_.take};
    if (declared_.against.empty()) return add(std::move(one), cells);
    for (const Cells::Part& other : cells.named("over").by(declared_.against)) {
      ComparedCells against = cells;
      against.with["over"] = other.cells;
      one.what = joined(part.name, "against " + other.name);
      add(one, against);
    }
  }

  void add(Number one, const ComparedCells& cells) {
    to_.cells = to_.cells + cells.of;
    for (const auto& [name, of_name] : cells.with) to_.cells = to_.cells + of_name;
    const Expression& value = *declared_.value;
    require_names(value, cells);
    if (!declared_.metric.empty()) require_same_unit(value, cells);
    for (const auto& [name, further] : declared_.beside) {
      require_names(further, cells);
      to_.beside.push_back({.what = joined(joined(one.region, one.what), name), .samples = evaluating(further, cells)});
    }
    if (declared_.bound) {
      require_names(*declared_.bound, cells);
      one.bounds = evaluating(*declared_.bound, cells);
    }
    if (!declared_.of_elements) {
      one.samples = evaluating(value, cells);
      to_.numbers.push_back(std::move(one));
      return;
    }
    const RecipeCell cell = cells.of.all().front();
    Index replicates = cell.replicates;  // that all cells of the comparison have
    for (const auto& reference : value.references())
      for (const RecipeCell& other : cells.named(reference.selection).all())
        replicates = std::min(replicates, other.replicates);
    const std::string name = one.what;
    for (Index replicate = 0; replicate < replicates; ++replicate) {
      one.what = joined(name, fmt::format("{} {}", place_of(cell.run.input).replicate, replicate + 1));
      one.samples = evaluating(value, cells, replicate);
      to_.numbers.push_back(one);
    }
  }

  std::function<Samples()> evaluating(const Expression& expression, const ComparedCells& cells,
                                      Index replicate = -1) const {
    return [expression, read = reading(declared_, declared_.take.value_or(to_.take), cells, replicate)] {
      return expression.value(read);
    };
  }

  const DeclaredNumbers& declared_;
  Judgement& to_;
  Cells of_;
  std::map<std::string, Cells> with_;
};

Judgement judgement_of(const DeclaredStatement& declared, const Recipe& recipe, const Runs& runs) {
  Judgement all{.statement = declared.statement, .rule = declared.rule, .take = declared.take};
  std::string words;
  std::vector<Curve> curves;
  for (const DeclaredNumbers& part : declared.parts) {
    Plan plan(part, recipe, runs, all);
    words += fmt::format("{}{}{}", words.empty() ? "" : "; ", part.name.empty() ? "" : part.name + ": ",
                         plan.words_of_value());
    if (declared.growth)
      for (Curve& curve : plan.curves()) curves.push_back(std::move(curve));
    else
      plan.add();
  }
  if (all.statement.definition.empty())
    all.statement.definition = declared.growth ? fmt::format("the power of n with which {} grows", words) : words;
  if (declared.growth) return growth(all.statement, *declared.growth, curves, declared.parts.front().metric);
  const auto& where = declared.parts.front().where;
  if (where.size() == 1 && where[0] != "part") all.rule.axis = where[0];
  return all;
}

void require_taken(const Judgement& judgement) {
  for (const RecipeCell& cell : judgement.cells.all())
    if (judgement.take == Take::exact && cell.replicates != 1 && !cell.asked.timing())
      throw Misuse(
          fmt::format("take = \"exact\" with {} replicates; expected 1, as nothing may be drawn", cell.replicates));
}

// 1 wherever a recipe reads: an interval that cannot exist shows before anything runs.
class Ones final : public Measurements {
 public:
  Samples scalars(const RecipeCell& cell, const std::string&, const std::string&) const override {
    Samples samples;
    for (Index r = 0; r < cell.replicates; ++r) samples[r] = 1;
    return samples;
  }
  std::map<Index, std::vector<double>> arrays(const RecipeCell& cell, const std::string&, const std::string& metric,
                                              size_t length) const override {
    std::map<Index, std::vector<double>> all;
    constexpr size_t of_any = 64;  // elements, where the statement leaves their number open
    if (cell.asked.timing() && !is_by_block(cell, metric)) return {{0, {1.0}}};
    for (Index r = 0; r < cell.replicates; ++r) all[r].assign(length > 0 ? length : of_any, 1.0);
    return all;
  }
};

// The replicates that an experiment has of all these cells.
Index recorded_replicates(const RunRequest& request) {
  const auto& entry = find<ExperimentEntry>(parse_spec(request.experiment).name);
  if (!entry.recorded)
    throw Misuse(fmt::format("replicates = \"all\", but {} has no recorded ones; expected a number", entry.text.name));
  return std::max<Index>(1, entry.recorded(expand(request)));
}

double tokens_of(const Recipe& recipe) {
  double sum = 0;
  for (const RecipeCell& cell : recipe.cells().all())
    sum += static_cast<double>(cell.replicates) * static_cast<double>(cell.asked.problem.shape.nk);
  return sum;
}

}  // namespace

void declare(const DeclaredRecipe& declared, Recipe& recipe) {
  recipe.name_inputs(declared.input_names);
  if (!declared.headline.words.empty()) recipe.headline(declared.headline.place, declared.headline.words);
  Runs runs;
  for (const DeclaredRun& run : declared.runs) {
    const Cells cells = at(run.place, [&] {
      RunRequest request = run.request;
      if (run.every_replicate) request.replicates = recorded_replicates(request);
      return run.heads.empty() ? recipe.run(request) : find<HeadsEntry>(run.heads).run(recipe, request);
    });
    if (!run.name.empty()) runs[run.name] = runs[run.name] + cells;
  }
  for (const DeclaredFigure& figure : declared.figures) draw(figure, recipe, runs);
  for (const DeclaredStatement& statement : declared.statements)
    at(statement.place, [&] {
      Judgement judgement = judgement_of(statement, recipe, runs);
      require_taken(judgement);
      recipe.judge(std::move(judgement));
    });
}

void require_sound(const RecipeEntry& entry, RecipeSize size) {
  double smaller = 0;
  for (const RecipeSize each : {RecipeSize::smoke, RecipeSize::quick, RecipeSize::full}) {
    if (each > size) break;
    const auto recipe = written(entry, each);
    const double tokens = tokens_of(*recipe);
    if (tokens < smaller)
      throw Misuse(
          fmt::format("{}: size {} plans {:g} tokens over all cells and replicates, and the size below it {:g}; "
                      "expected smoke <= quick <= full: see 'sizes'",
                      entry.file, to_string(each), tokens, smaller));
    smaller = tokens;
    if (each != size) continue;
    try {
      recipe->verdicts(Ones());
    } catch (const std::logic_error& error) {
      throw Misuse(fmt::format("{}: at size {}, {}", entry.file, to_string(each), error.what()));
    }
  }
}

template class Registry<HeadsEntry>;
template class Registry<NumbersFunction>;

}  // namespace attnbench
