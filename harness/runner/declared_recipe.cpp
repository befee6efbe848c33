#include "harness/runner/declared_recipe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "harness/experiment/experiment.hpp"
#include "harness/runner/reproduce.hpp"
#include "harness/store/text.hpp"

namespace attnbench {

namespace {

// Runs the action. Its Misuse, or std::logic_error of a selection, becomes a Misuse that names the place.
template <class Action>
auto at(const std::string& place, Action&& action) {
  try {
    return action();
  } catch (const Misuse& misuse) {
    throw Misuse(fmt::format("{}: {}", place, on_one_line(misuse.what())));
  } catch (const std::logic_error& error) {
    throw Misuse(fmt::format("{}: {}", place, on_one_line(error.what())));
  }
}

using Runs = std::map<std::string, Cells>;

Cells selected(const Recipe& recipe, const Runs& runs, const Selection& selection) {
  Cells cells = recipe.cells();
  if (!selection.run.empty()) {
    const auto run = runs.find(selection.run);
    if (run == runs.end()) {
      std::vector<std::string> names;
      for (const auto& [name, of_run] : runs) names.push_back(name);
      throw Misuse(fmt::format("no run has the name '{}'{}", selection.run, nearest_names(selection.run, names)));
    }
    cells = run->second;
  }
  return selection.conditions.empty() ? cells : cells.where(selection.conditions);
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

void draw(const DeclaredFigure& figure, Recipe& recipe, const Runs& runs) {
  std::vector<Panel> panels;
  for (const DeclaredPanel& declared : figure.panels)
    at(declared.place, [&] {
      Panel panel = declared.panel;
      panel.cells = selected(recipe, runs, declared.cells);
      for (const std::string& metric : {panel.y, panel.theory, panel.x_metric, panel.area, panel.bound_x})
        require_some_metric(panel.cells, metric);
      panels.push_back(std::move(panel));
    });
  at(figure.place, [&] { recipe.figure(figure.name, figure.title, figure.caption, panels); });
}

std::string name_of(const Cell& cell) {
  return fmt::format("{} on {}, n = {}, d = {}", cell.method.spec(), cell.input.spec(), cell.problem.shape.nk,
                     cell.problem.shape.d);
}

// One comparison of a statement, planned before anything runs.
struct Planned {
  std::string what, region;
  std::optional<double> coordinate;
  Cells of;
  std::optional<Cells> over;
};

// The cells that agree with the part in every column that they have and the selection does not set itself.
Cells beside(Cells cells, const Selection& selection, const std::vector<Condition>& shared) {
  for (const Condition& condition : shared) {
    const bool set = std::any_of(selection.conditions.begin(), selection.conditions.end(),
                                 [&](const Condition& own) { return own.column == condition.column; });
    if (!set && cells.has(condition.column)) cells = cells.where({condition});
  }
  return cells;
}

void require_one(const Cells& cells, const char* which) {
  if (cells.size() == 1) return;
  const auto all = cells.all();
  throw Misuse(fmt::format(
      "'{}' leaves {} cells for one comparison, such as {}, and {}; expected one: name in 'each' the column in which "
      "they differ, or set it in '{}'",
      which, all.size(), name_of(all[0].asked), name_of(all[1].asked), which));
}

void require_taken(const Cells& cells, Taken taken) {
  for (const RecipeCell& cell : cells.all()) {
    const bool timing = cell.asked.timing();
    if (taken == Taken::median_of_turns && !timing)
      throw Misuse(
          fmt::format("\"take\": \"median of turns\", but {} measures no time; expected \"median\", \"mean\" or "
                      "\"exact\"",
                      cell.asked.experiment.name()));
    if (taken == Taken::exact && cell.replicates != 1)
      throw Misuse(
          fmt::format("\"take\": \"exact\" with {} replicates; expected 1, as nothing may be drawn", cell.replicates));
  }
}

std::vector<Planned> planned(const DeclaredStatement& declared, const Recipe& recipe, const Runs& runs) {
  const Cells of = selected(recipe, runs, declared.of);
  require_metric(of, declared.metric);
  require_taken(of, declared.taken);
  std::optional<Cells> over;
  if (declared.over) {
    over = selected(recipe, runs, *declared.over);
    require_metric(*over, declared.over_metric.empty() ? declared.metric : declared.over_metric);
    require_taken(*over, declared.taken);
  }
  std::vector<Planned> all;
  for (const Cells::Part& region : of.by(declared.where)) {
    if (declared.each == each_cell)
      for (const Cells& cell : region.cells.one_by_one())
        all.push_back({name_of(cell.all().front().asked), region.name, region.coordinate, cell,
                       over ? std::optional(cell) : std::nullopt});
    else
      for (const Cells::Part& part : region.cells.by(declared.each)) {
        Planned one{part.name, region.name, region.coordinate, part.cells, {}};
        require_one(one.of, "of");
        if (over) {
          one.over = beside(beside(*over, *declared.over, region.shared), *declared.over, part.shared);
          require_one(*one.over, "over");
        }
        all.push_back(std::move(one));
      }
  }
  return all;
}

Estimate estimate(const DeclaredStatement& declared, const Planned& one, double rate) {
  const std::string& metric = declared.metric;
  const std::string& below = declared.over_metric.empty() ? metric : declared.over_metric;
  if (declared.taken == Taken::median_of_turns)
    return median_of(one.over ? times(one.of, *one.over, metric) : one.of.turns(metric), rate);
  const Samples samples = one.of.scalar(metric);
  if (!one.over)
    return declared.taken == Taken::median ? median_of(samples, rate)
           : declared.taken == Taken::mean ? mean(samples, rate)
           : samples.empty()               ? unmeasured()
                                           : certain(samples.begin()->second);
  const Samples divisors = one.over->scalar(below);
  if (declared.taken == Taken::median) return median_ratio(samples, divisors, rate);
  const Samples ratios = quotients(samples, divisors);
  if (declared.taken == Taken::mean) return mean(ratios, rate);
  return ratios.empty() ? unmeasured() : certain(ratios.begin()->second);
}

// Every number of every cell against its bound.
Finding every_number_at_most(const DeclaredStatement& declared, const std::vector<Planned>& cells) {
  std::vector<Bounded> all;
  size_t without = 0;
  for (const Planned& one : cells) {
    const Samples numbers = one.of.scalar(declared.metric);
    const Samples bounds = declared.rule.bound_metric.empty() ? Samples{} : one.of.scalar(declared.rule.bound_metric);
    size_t compared = 0;
    for (const auto& [replicate, number] : numbers) {
      if (declared.rule.bound_metric.empty()) {
        all.push_back({one.what, number, declared.rule.bound});
      } else if (const auto bound = bounds.find(replicate); bound != bounds.end()) {
        all.push_back({one.what, number, bound->second});
      } else {
        continue;
      }
      ++compared;
    }
    without += compared == 0;
  }
  Finding finding = all_at_most(all);
  if (without > 0) {
    finding.numbers += fmt::format("; {} of {} cells have no such number", without, cells.size());
    if (finding.ruling == Ruling::holds) finding.ruling = Ruling::open;
  }
  return finding;
}

Finding judged(const DeclaredStatement& declared, const std::vector<Planned>& all, const Recipe& recipe) {
  const DeclaredRule& rule = declared.rule;
  if (rule.kind == DeclaredRule::Kind::at_most) return every_number_at_most(declared, all);
  const double rate = recipe.error_rate(all.size());
  std::vector<Comparison> comparisons;
  std::vector<Region> regions;
  for (const Planned& one : all) {
    const Comparison comparison{one.what, estimate(declared, one, rate)};
    comparisons.push_back(comparison);
    if (regions.empty() || regions.back().name != one.region)
      regions.push_back({one.region, {}, one.coordinate, declared.any ? Region::Rule::some : Region::Rule::all});
    regions.back().comparisons.push_back(comparison);
  }
  const std::string axis = declared.where.size() == 1 ? declared.where[0] : "";
  switch (rule.kind) {
    case DeclaredRule::Kind::below:
      return declared.where.empty() ? all_below(rule.bound, comparisons)
                                    : below_where(rule.bound, regions, axis, declared.equal_within);
    case DeclaredRule::Kind::above:
      return declared.where.empty() ? all_above(rule.bound, comparisons)
                                    : above_where(rule.bound, regions, axis, declared.equal_within);
    case DeclaredRule::Kind::between:
      return all_between(rule.bound, rule.high, comparisons);
    case DeclaredRule::Kind::contains:
      return all_contain(rule.bound, rule.resolution, comparisons);
    case DeclaredRule::Kind::some_below:
      return some_below(rule.bound, comparisons);
    default:
      return values_of(comparisons, rule.report);
  }
}

// 1 wherever a recipe reads: an interval that cannot exist shows before anything runs.
class Ones final : public Measurements {
 public:
  Samples scalars(const RecipeCell& cell, const std::string&, const std::string&) const override {
    Samples samples;
    for (Index r = 0; r < cell.replicates; ++r) samples[r] = 1;
    return samples;
  }
  std::map<Index, std::vector<double>> arrays(const RecipeCell& cell, const std::string&, const std::string&,
                                              size_t length) const override {
    std::map<Index, std::vector<double>> all;
    for (Index r = 0; r < cell.replicates; ++r) all[r].assign(length, 1.0);
    return all;
  }
};

double tokens_of(const Recipe& recipe) {
  double sum = 0;
  for (const RecipeCell& cell : recipe.cells().all())
    sum += static_cast<double>(cell.replicates) * static_cast<double>(cell.asked.problem.shape.nk);
  return sum;
}

}  // namespace

void declare(const DeclaredRecipe& declared, Recipe& recipe) {
  Runs runs;
  for (const DeclaredRun& run : declared.runs) {
    const Cells cells = at(run.place, [&] { return recipe.run(run.request); });
    if (!run.name.empty()) runs[run.name] = runs[run.name] + cells;
  }
  for (const DeclaredFigure& figure : declared.figures) draw(figure, recipe, runs);
  for (const DeclaredStatement& statement : declared.statements) {
    const auto all = at(statement.place, [&] { return planned(statement, recipe, runs); });
    if (!statement.rule.bound_metric.empty())
      at(statement.place, [&] { require_metric(selected(recipe, runs, statement.of), statement.rule.bound_metric); });
    recipe.judge(statement.statement, [=, &recipe] { return judged(statement, all, recipe); });
  }
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

}  // namespace attnbench
