// attnbench reproduce: runs recipes, keeps their figures and verdicts, and makes the page.
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

enum class Outcome { holds, fails, interrupted };

// holds: no verdict is FAIL. Interrupted, nothing is judged: half of the numbers are missing.
Outcome reproduce(const RecipeEntry& recipe, RecipeSize size, Store& store, std::int64_t run_id) {
  const auto started = std::chrono::steady_clock::now();
  RunSummary total;
  const auto requests = recipe.runs(size);
  for (auto request : requests) {
    request.threads = allowed_cores();
    // Timings are of one thread: ratios then do not depend on how many cores the machine happens to have.
    if (find<ExperimentEntry>(parse_spec(request.experiment).name).timing()) request.threads = 1;
    const auto summary = run(request, store, run_id);
    total.ran += summary.ran;
    total.already += summary.already;
    total.not_done += summary.not_done;
    if (total.first_reason.empty()) total.first_reason = summary.first_reason;
    if (summary.interrupted) return Outcome::interrupted;
  }
  const Results results(store, requests);
  Index position = 0;
  for (const auto& figure : recipe.figures(size))
    store.put_figure(recipe.text.name, figure.name, position++, drawn_from(figure, results.keys()));
  std::vector<Verdict> verdicts;
  if (recipe.judge) verdicts = recipe.judge(results, size);
  store.put_verdicts(recipe.text.name, verdicts);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  std::cout << fmt::format("{:<30}{:>5} run {:>5} there already  {:>6.1f} s{}\n", recipe.text.name, total.ran,
                           total.already, seconds,
                           total.not_done ? fmt::format("  {} not done: {}", total.not_done, total.first_reason) : "")
            << std::flush;
  bool holds = true;
  for (const auto& verdict : verdicts) {
    std::cout << fmt::format("  {:<12}{} [{}]\n", to_string(verdict.outcome), verdict.statement, verdict.numbers);
    holds = holds && verdict.outcome != Verdict::Outcome::fail;
  }
  std::cout << std::flush;
  return holds ? Outcome::holds : Outcome::fails;
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
  bool holds = true;
  {
    Store store(results);
    const auto run_id = store.begin_run(command_line, environment_json());
    for (const auto& name : names) {
      const Outcome outcome = reproduce(find<RecipeEntry>(name), size, store, run_id);
      if (outcome == Outcome::interrupted) {
        std::cout << "interrupted; the same command goes on\n";
        return 130;
      }
      holds = holds && outcome == Outcome::holds;
    }
  }
  std::cout << "the page with the figures: " << std::flush;
  const int drawn =
      run_script("report.py", {results, "-o", std::filesystem::absolute(output).lexically_normal().string()});
  return drawn != 0 ? drawn : holds ? 0 : 1;
}

const bool registered =
    add(CommandEntry{.text = {.name = "reproduce",
                              .summary = "run the recipes, judge them and make the page with their figures",
                              .formula = "reproduce [RECIPE...] [--quick|--full] [--results FILE] [-o DIR]"},
                     .run = run_command});

}  // namespace
}  // namespace attnbench
