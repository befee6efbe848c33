#include "harness/runner/reproduce.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "harness/runner/experiment.hpp"
#include "harness/store/environment.hpp"

namespace attnbench {

namespace {

// What a panel's conditions and curves call a method, input or experiment.
constexpr std::pair<const char*, const char*> named_in_where[] = {
    {"experiment", "experiments"}, {"method", "methods"}, {"input", "inputs"}};
constexpr const char* methods_of_panels[] = {"references", "ratio", "ratio_to", "bound"};

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

nlohmann::json varied(nlohmann::json specs, const char* plural, const std::vector<Setting>& settings) {
  if (specs.is_array()) {
    for (auto& spec : specs) spec = varied(spec, plural, settings);
    return specs;
  }
  const auto spec = specs.get<std::string>();
  return spec.empty() ? spec : varied(Params(plural, spec), settings).spec();
}

// Its conditions follow the cells.
Figure varied(Figure figure, const std::vector<Setting>& settings) {
  if (settings.empty()) return figure;
  auto description = nlohmann::json::parse(figure.json);
  for (auto& panel : description["panels"]) {
    for (const auto& [column, plural] : named_in_where)
      if (panel["where"].contains(column)) panel["where"][column] = varied(panel["where"][column], plural, settings);
    for (const char* field : methods_of_panels) panel[field] = varied(panel[field], "methods", settings);
  }
  figure.json = description.dump();
  return figure;
}

// Those that differ, as they are run.
std::vector<Cell> to_run(const std::vector<RecipeCell>& cells, bool timing) {
  std::vector<Cell> all;
  std::set<std::string> seen;
  for (const RecipeCell& cell : cells)
    if (seen.insert(cell.run.row(timing).key).second) all.push_back(cell.run);
  return all;
}

void add(RunSummary& total, const RunSummary& one) {
  total.ran += one.ran;
  total.already += one.already;
  total.not_done += one.not_done;
  if (total.first_reason.empty()) total.first_reason = one.first_reason;
  total.interrupted = one.interrupted;
}

std::string command_of(const RecipeEntry& recipe, RecipeSize size, const Variation& variation) {
  std::string command = fmt::format("attnbench reproduce {} --{}", recipe.text.name, to_string(size));
  if (variation.seeds > 1) command += fmt::format(" --seeds {}", variation.seeds);
  for (const Setting& setting : variation.settings) command += fmt::format(" --set {}={}", setting.name, setting.value);
  return command;
}

}  // namespace

std::string to_string(RecipeSize size) {
  return size == RecipeSize::smoke ? "smoke" : size == RecipeSize::quick ? "quick" : "full";
}

std::vector<RecipeCell> cells_of(const std::vector<RunRequest>& requests, const std::vector<Setting>& settings) {
  std::vector<RecipeCell> all;
  for (const RunRequest& request : requests)
    for (const Cell& cell : expand(request)) all.push_back({cell, varied(cell, settings)});
  return all;
}

std::vector<Setting> without_effect(const std::vector<Setting>& settings, const std::vector<RecipeCell>& cells) {
  std::vector<Setting> none;
  for (const Setting& setting : settings)
    if (std::none_of(cells.begin(), cells.end(), [&](const RecipeCell& cell) {
          return varied(cell.asked, {setting}).row(false).key != cell.asked.row(false).key;
        }))
      none.push_back(setting);
  return none;
}

std::optional<Reproduction> reproduce(const RecipeEntry& recipe, RecipeSize size, const Variation& variation,
                                      Store& store, std::int64_t run_id, RunSummary& total) {
  const auto started = std::chrono::steady_clock::now();
  Reproduction done{.recipe = recipe.text.name,
                    .size = to_string(size),
                    .command = command_of(recipe, size, variation),
                    .verdicts = {}};
  std::vector<std::vector<Verdict>> by_seed;
  for (Index seed = 0; seed < variation.seeds; ++seed) {
    std::vector<RecipeCell> all;
    for (RunRequest request : recipe.runs(size)) {
      // Timings are of one thread: ratios then do not depend on how many cores the machine happens to have.
      const bool timing = find<ExperimentEntry>(parse_spec(request.experiment).name).timing();
      request.threads = timing ? 1 : allowed_cores();
      auto cells = cells_of({request}, variation.settings);
      for (RecipeCell& cell : cells) cell.run.seed += static_cast<std::uint64_t>(seed);
      add(total, run(request, to_run(cells, timing), store, run_id, {}));
      if (total.interrupted) return std::nullopt;
      all.insert(all.end(), cells.begin(), cells.end());
    }
    const Results results(store, all);
    const auto keys = results.keys();
    done.cells.insert(done.cells.end(), keys.begin(), keys.end());
    if (recipe.judge) by_seed.push_back(recipe.judge(results, size));
    if (seed > 0) continue;
    Index position = 0;
    for (const Figure& figure : recipe.figures(size))
      store.put_figure(recipe.text.name, figure.name, position++, drawn_from(varied(figure, variation.settings), keys));
  }
  if (recipe.judge) done.verdicts = agreed(by_seed);
  for (Verdict& verdict : done.verdicts)
    if (verdict.statement.source.empty()) verdict.statement.source = recipe.text.reference;
  done.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  store.put_reproduction(done);
  return done;
}

}  // namespace attnbench
