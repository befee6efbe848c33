#include "harness/runner/reproduce.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "harness/experiment/cell_row.hpp"
#include "harness/machine/resources.hpp"
#include "harness/plugins/plugins.hpp"
#include "harness/store/store.hpp"
#include "harness/store/text.hpp"

namespace attnbench {

namespace {

// A request with the cells that it runs, without duplicates.
struct Asked {
  RunRequest request;
  std::vector<Cell> cells;
};

// Leaves out cells whose keys are in `seen`, and adds the keys of the others to it.
Asked asked(const Recipe::Run& run, bool retry, std::set<std::string>& seen) {
  const bool timing = run.request.timing();
  Asked all{run.request, {}};
  all.request.retry = retry;
  // Timings use one thread, so that ratios do not depend on how many cores the machine has.
  all.request.threads = timing ? 1 : allowed_cores();
  for (const RecipeCell& cell : run.cells)
    if (seen.insert(row_of(cell.run, timing).key).second) all.cells.push_back(cell.run);
  return all;
}

std::string command_of(const RecipeEntry& recipe, RecipeSize size, const Variation& variation) {
  std::string command =
      fmt::format("attnbench reproduce {} --{}", recipe.file.empty() ? recipe.text.name : shell_quoted(recipe.file),
                  to_string(size));
  if (!recipe.file.empty())
    for (const auto& plugin : plugins().files) command += " --plugin " + shell_quoted(plugin.string());
  if (variation.seeds > 1) command += fmt::format(" --seeds {}", variation.seeds);
  for (const Setting& setting : variation.settings) command += fmt::format(" --set {}={}", setting.name, setting.value);
  return command;
}

}  // namespace

bool measures_time(const Recipe& recipe) {
  return std::any_of(recipe.runs().begin(), recipe.runs().end(), [](const auto& run) { return run.request.timing(); });
}

std::unique_ptr<Recipe> written(const RecipeEntry& entry, RecipeSize size, const std::vector<Setting>& settings,
                                std::uint64_t further_seed) {
  auto recipe = std::make_unique<Recipe>(size, entry.text.name, settings, further_seed);
  entry.write(*recipe);
  return recipe;
}

Forecast forecast(const std::vector<const RecipeEntry*>& recipes, RecipeSize size, const Variation& variation,
                  const Store& store, const std::filesystem::path& results) {
  Forecast all{.total = {.by_past = true}};
  std::set<std::string> seen;  // cells that several recipes share run once
  std::map<std::string, std::vector<PastCell>> past;
  const EndedUnits ended = ended_units({.retry = variation.retry}, store);
  for (const RecipeEntry* entry : recipes) {
    WholeProgress::Part& part = all.parts.emplace_back(WholeProgress::Part{.name = entry->text.name});
    for (Index seed = 0; seed < variation.seeds; ++seed) {
      const auto recipe = written(*entry, size, variation.settings, static_cast<std::uint64_t>(seed));
      for (const Recipe::Run& run : recipe->runs()) {
        const auto [request, cells] = asked(run, variation.retry, seen);
        const std::string experiment = parse_spec(request.experiment).name;
        if (!past.contains(experiment)) past[experiment] = past_cells(results, experiment);
        const Backlog backlog = backlog_of(request, cells, ended, &store);
        const RunEstimate expected = estimate(request, backlog, past[experiment]);
        all.total += expected;
        part.seconds += expected.seconds;
        for (const auto& one : backlog.entries) part.units += one.missing.size();
      }
    }
  }
  return all;
}

std::optional<Reproduction> reproduce(const RecipeEntry& entry, RecipeSize size, const Variation& variation,
                                      Store& store, std::int64_t run_id, RunSummary& total) {
  const auto started = std::chrono::steady_clock::now();
  Reproduction done{.recipe = entry.text.name,
                    .size = to_string(size),
                    .command = command_of(entry, size, variation),
                    .verdicts = {}};
  const StoredMeasurements measurements(store);
  std::vector<std::vector<Verdict>> by_seed;
  std::set<std::string> keys;
  for (Index seed = 0; seed < variation.seeds; ++seed) {
    const auto recipe = written(entry, size, variation.settings, static_cast<std::uint64_t>(seed));
    for (const Recipe::Run& one : recipe->runs()) {
      std::set<std::string> seen;
      const auto [request, cells] = asked(one, variation.retry, seen);
      total += run(request, cells, store, run_id, {});
      if (total.interrupted) return std::nullopt;
    }
    for (const std::string& key : recipe->cells().keys())
      if (keys.insert(key).second) done.cells.push_back(key);
    by_seed.push_back(recipe->verdicts(measurements));
    if (seed > 0) continue;
    Index position = 0;
    for (const Figure& figure : recipe->figures(entry.text))
      store.put_figure(entry.text.name, figure.name, position++, figure.json);
  }
  done.verdicts = agreed(by_seed);
  done.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  store.put_reproduction(done);
  return done;
}

}  // namespace attnbench
