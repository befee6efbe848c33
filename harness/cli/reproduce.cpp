// attnbench reproduce: runs recipes, keeps their figures and verdicts, and makes the page.
#include "harness/runner/reproduce.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <iostream>

#include "harness/cli/command.hpp"
#include "harness/cli/script.hpp"
#include "harness/store/environment.hpp"

namespace attnbench {
namespace {

std::vector<Setting> parse_settings(const std::vector<std::string>& words) {
  std::vector<Setting> settings;
  for (const auto& word : words) {
    const auto equals = word.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == word.size())
      throw Misuse(fmt::format("reproduce: --set {}: expected NAME=VALUE, such as --set scale=0.7", word));
    settings.push_back({word.substr(0, equals), word.substr(equals + 1)});
  }
  return settings;
}

void require_effect(const std::vector<Setting>& settings, const std::vector<std::string>& recipes, RecipeSize size) {
  std::vector<RecipeCell> cells;
  for (const auto& name : recipes) {
    const auto more = cells_of(find<RecipeEntry>(name).runs(size), settings);
    cells.insert(cells.end(), more.begin(), more.end());
  }
  if (const auto none = without_effect(settings, cells); !none.empty())
    throw Misuse(
        fmt::format("reproduce: --set {}={} changes nothing: no method, input or experiment of {} leaves a parameter "
                    "'{}' at another value; see `attnbench plan` and `attnbench describe` for what they have",
                    none[0].name, none[0].value, recipes.size() == 1 ? recipes[0] : "these recipes", none[0].name));
}

// "PASS        statement (region)", and below it what decided and where the statement is from.
void print(const Verdict& verdict) {
  const std::string region = verdict.region.empty() ? "" : fmt::format(": {}", verdict.region);
  std::cout << fmt::format("  {:<12}{}{}\n", to_string(verdict.outcome), verdict.statement.text, region);
  std::cout << fmt::format("{:14}{}\n{:14}[{}]\n", "", verdict.numbers, "", verdict.statement.source);
  if (contradicts_expectation(verdict))
    std::cout << fmt::format("{:14}NOT AS EXPECTED, which was {}\n", "", to_string(verdict.statement.expected));
}

struct Tally {
  std::map<Verdict::Outcome, size_t> outcomes;
  std::vector<std::string> contradictions;
  double seconds = 0;

  void add(const Reproduction& done) {
    seconds += done.seconds;
    for (const Verdict& verdict : done.verdicts) {
      ++outcomes[verdict.outcome];
      if (contradicts_expectation(verdict))
        contradictions.push_back(fmt::format("{}: {}", done.recipe, verdict.statement.text));
    }
  }
};

void print(const Tally& tally) {
  std::vector<std::string> words;
  size_t verdicts = 0;
  for (const auto& [outcome, count] : tally.outcomes) {
    words.push_back(fmt::format("{} {}", count, to_string(outcome)));
    verdicts += count;
  }
  std::cout << fmt::format("{} verdicts in {:.0f} s: {}; {} not as expected\n", verdicts, tally.seconds,
                           fmt::join(words, ", "), tally.contradictions.size());
  for (const auto& line : tally.contradictions) std::cout << "  " << line << "\n";
}

int run_command(const std::vector<std::string>& words) {
  std::vector<std::string> names, settings;
  std::string results, output;
  Variation variation;
  bool smoke = false, quick = false, full = false;
  options::options_description visible("options");
  visible.add_options()("recipe", options::value(&names), "recipes (default: all; see attnbench list recipes)")(
      "quick", options::bool_switch(&quick), "the sizes of five minutes (default)")(
      "full", options::bool_switch(&full), "the published sizes")("smoke", options::bool_switch(&smoke),
                                                                  "tiny sizes: shows that everything runs, no more")(
      "seeds", options::value(&variation.seeds)->default_value(1),
      "make each verdict with so many seeds: one that flips is AMBIGUOUS")(
      "set", options::value(&settings),
      "NAME=VALUE: a parameter wherever a recipe leaves it as it is by default, such as scale=0.7 (repeatable)")(
      "results", options::value(&results)->default_value("results/attnbench.db"), "results file")(
      "output,o", options::value(&output)->default_value("results/report"), "folder for the page and the figures");
  if (!parse_arguments("reproduce", visible, words, {{"recipe", -1}})) return 0;
  if (smoke + quick + full > 1) throw Misuse("reproduce: --smoke, --quick and --full exclude each other; keep one");
  constexpr Index most_seeds = 100;
  if (variation.seeds < 1 || variation.seeds > most_seeds)
    throw Misuse(fmt::format("reproduce: --seeds {}: expected 1 to {}", variation.seeds, most_seeds));
  if (names.empty()) names = catalogue("recipes").names();
  for (const auto& name : names) find<RecipeEntry>(name);  // misuse shows before anything runs
  const RecipeSize size = smoke ? RecipeSize::smoke : full ? RecipeSize::full : RecipeSize::quick;
  variation.settings = parse_settings(settings);
  require_effect(variation.settings, names, size);
  const auto folder = std::filesystem::absolute(output).lexically_normal();
  require_folder("reproduce", folder);
  Tally tally;
  {
    Store store(results);
    const auto run_id = store.begin_run(command_line, environment_json());
    for (const auto& name : names) {
      RunSummary total;
      const auto done = reproduce(find<RecipeEntry>(name), size, variation, store, run_id, total);
      if (!done) {
        std::cout << "interrupted; the same command goes on\n";
        return 130;
      }
      std::cout << fmt::format(
          "{:<30}{:>5} run {:>5} there already  {:>6.1f} s{}\n", name, total.ran, total.already, done->seconds,
          total.not_done ? fmt::format("  {} not done: {}", total.not_done, total.first_reason) : "");
      for (const Verdict& verdict : done->verdicts) print(verdict);
      std::cout << std::flush;
      tally.add(*done);
    }
  }
  print(tally);
  std::cout << "the page with the figures: " << std::flush;
  const int drawn = run_script("report.py", {results, "-o", folder.string(), "--bundle"});
  if (drawn != 0) return drawn;
  return tally.contradictions.empty() || size == RecipeSize::smoke ? 0 : 1;  // the smallest sizes show nothing
}

const bool registered = add(CommandEntry{
    .text = {.name = "reproduce",
             .summary = "run the recipes, judge them and make the page with their figures",
             .formula =
                 "reproduce [RECIPE...] [--quick|--full] [--seeds K] [--set NAME=VALUE] [--results FILE] [-o DIR]"},
    .run = run_command});

}  // namespace
}  // namespace attnbench
