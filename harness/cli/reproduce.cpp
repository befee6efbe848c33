// attnbench reproduce: runs recipes, keeps their figures as data, and makes the page.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <iostream>

#include "harness/cli/command.hpp"
#include "harness/cli/script.hpp"
#include "harness/runner/recipe.hpp"
#include "harness/runner/run.hpp"
#include "harness/store/environment.hpp"

namespace attnbench {
namespace {

void reproduce(const RecipeEntry& recipe, RecipeSize size, Store& store, std::int64_t run_id) {
  const auto started = std::chrono::steady_clock::now();
  RunSummary total;
  for (auto request : recipe.runs(size)) {
    request.threads = allowed_cores();
    // Timings are of one thread: ratios then do not depend on how many cores the machine happens to have.
    if (find<ExperimentEntry>(parse_spec(request.experiment).name).timing()) request.threads = 1;
    const auto summary = run(request, store, run_id);
    total.ran += summary.ran;
    total.already += summary.already;
    total.not_done += summary.not_done;
    if (total.first_reason.empty()) total.first_reason = summary.first_reason;
  }
  Index position = 0;
  for (const auto& figure : recipe.figures(size))
    store.put_figure(recipe.text.name, figure.name, position++, figure.json);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  std::cout << fmt::format("{:<22}{:>5} run {:>5} there already  {:>6.1f} s{}\n", recipe.text.name, total.ran,
                           total.already, seconds,
                           total.not_done ? fmt::format("  {} not done: {}", total.not_done, total.first_reason) : "")
            << std::flush;
}

int run_command(const std::vector<std::string>& words) {
  std::vector<std::string> names;
  std::string results, output;
  bool smoke = false, quick = false, full = false;
  options::options_description visible("options");
  visible.add_options()("recipe", options::value(&names), "recipes (default: all; see attnbench list recipes)")(
      "quick", options::bool_switch(&quick), "the sizes of five minutes (default)")(
      "full", options::bool_switch(&full), "the published sizes")("smoke", options::bool_switch(&smoke),
                                                                  "tiny sizes: shows that everything runs, no more")(
      "results", options::value(&results)->default_value("results/attnbench.db"), "results file")(
      "output,o", options::value(&output)->default_value("results/report"), "folder for the page and the figures");
  if (!parse_arguments("reproduce", visible, words, {{"recipe", -1}})) return 0;
  if (smoke + quick + full > 1) throw Misuse("reproduce: --smoke, --quick and --full exclude each other; keep one");
  if (names.empty()) names = catalogue("recipes").names();
  for (const auto& name : names) find<RecipeEntry>(name);  // misuse shows before anything runs
  const RecipeSize size = smoke ? RecipeSize::smoke : full ? RecipeSize::full : RecipeSize::quick;
  {
    Store store(results);
    const auto run_id = store.begin_run(command_line, environment_json());
    for (const auto& name : names) reproduce(find<RecipeEntry>(name), size, store, run_id);
  }
  std::cout << "the page with the figures: " << std::flush;
  return run_script("report.py", {results, "-o", std::filesystem::absolute(output).lexically_normal().string()});
}

const bool registered =
    add(CommandEntry{.text = {.name = "reproduce",
                              .summary = "run the recipes and make the page with their figures",
                              .formula = "reproduce [RECIPE...] [--quick|--full] [--results FILE] [-o DIR]"},
                     .run = run_command});

}  // namespace
}  // namespace attnbench
