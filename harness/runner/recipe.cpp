#include "harness/runner/recipe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "harness/experiment/cell_row.hpp"
#include "harness/random/streams.hpp"

namespace attnbench {

namespace {

bool is_default(const Params& params, const std::string& name) {
  const auto& declared = params.declared();
  const auto parameter =
      std::find_if(declared.begin(), declared.end(), [&](const Parameter& p) { return p.name == name; });
  return parameter != declared.end() && params.text(name) == parameter->default_value;
}

Params varied(Params params, const std::vector<Setting>& settings) {
  for (const Setting& setting : settings)
    if (params.has(setting.name) && is_default(params, setting.name)) params = params.with(setting.name, setting.value);
  return params;
}

Cell varied(Cell cell, const std::vector<Setting>& settings) {
  for (Params* params : {&cell.experiment, &cell.method, &cell.input}) *params = varied(*params, settings);
  return cell;
}

std::string varied_method(const std::string& spec, const std::vector<Setting>& settings) {
  return spec.empty() ? spec : varied(Params("methods", spec), settings).spec();
}

// A panel also names methods outside its cells. They vary like the cells.
Panel varied(Panel panel, const std::vector<Setting>& settings) {
  for (auto* methods : {&panel.references, &panel.ratio, &panel.bound})
    for (auto& spec : *methods) spec = varied_method(spec, settings);
  panel.ratio_to = varied_method(panel.ratio_to, settings);
  return panel;
}

}  // namespace

std::string to_string(RecipeSize size) {
  return size == RecipeSize::smoke ? "smoke" : size == RecipeSize::quick ? "quick" : "full";
}

Recipe::Recipe(RecipeSize size, const std::string& name, std::vector<Setting> settings, std::uint64_t further_seed)
    : size_(size),
      settings_(std::move(settings)),
      further_seed_(further_seed),
      seed_of_timings_(name.empty() ? 0 : hash_bytes(name) % 1'000'000) {}

Cells Recipe::run(RunRequest request) {
  const bool timing = request.timing();
  std::vector<RecipeCell> cells;
  for (const Cell& cell : expand(request)) {
    cells.push_back({cell, varied(cell, settings_), request.replicates});
    cells.back().run.seed += further_seed_ + (timing ? seed_of_timings_ : 0);
  }
  const Cells handle = table_.add(cells);
  runs_.push_back({std::move(request), std::move(cells)});
  return handle;
}

void Recipe::headline(int place, std::string question) { headline_ = {place, std::move(question)}; }

void Recipe::figure(std::string name, std::string title, std::string caption, const std::vector<Panel>& panels) {
  for (const Panel& panel : panels)
    if (panel.cells.size() == 0)
      throw std::logic_error(fmt::format("figure {}: panel '{}' has no cells", name, panel.title));
  for (const Panel& panel : panels)
    if (panel.kind == "curve" || panel.kind == "map") panel.cells.require_any(panel.x);
  NamedFigure one{std::move(name), std::move(title), std::move(caption), {}};
  for (const Panel& panel : panels) one.panels.push_back(varied(panel, settings_));
  figures_.push_back(std::move(one));
}

void Recipe::judge(Judgement judgement) {
  std::string& definition = judgement.statement.definition;
  if (judgement.cells.size() > 0)
    definition += fmt::format("{}{}", definition.empty() ? "" : ". ", settings_in_words(judgement.cells));
  if (!judgement.numbers.empty()) definition += fmt::format(". {}", rule_in_words(judgement));
  if (!judgement.statement.setting.empty())
    definition += fmt::format(". Not the source's setting: {}", judgement.statement.setting);
  judgements_.push_back(std::move(judgement));
}

std::vector<Figure> Recipe::figures(const Description& section) const {
  std::vector<Figure> all;
  for (const NamedFigure& one : figures_)
    all.push_back(attnbench::figure(one.name, section, one.title, one.caption, one.panels,
                                    all.empty() ? headline_ : HeadlineQuestion{}));
  return all;
}

std::vector<Statement> Recipe::statements() const {
  std::vector<Statement> all;
  for (const Judgement& one : judgements_) all.push_back(one.statement);
  return all;
}

std::vector<Verdict> Recipe::verdicts(const Measurements& measurements) {
  read(measurements);
  std::vector<Verdict> all;
  for (const Judgement& one : judgements_) {
    try {
      all.push_back({one.statement, judged(one, error_rate())});
    } catch (const std::logic_error& e) {
      throw std::logic_error(fmt::format("\"{}\": {}", one.statement.text, e.what()));
    }
  }
  return all;
}

std::vector<Setting> without_effect(const std::vector<Setting>& settings, const std::vector<RecipeCell>& cells) {
  std::vector<Setting> idle;
  for (const Setting& setting : settings)
    if (std::none_of(cells.begin(), cells.end(), [&](const RecipeCell& cell) {
          return row_of(varied(cell.asked, {setting}), false).key != row_of(cell.asked, false).key;
        }))
      idle.push_back(setting);
  return idle;
}

template class Registry<RecipeEntry>;

}  // namespace attnbench
