// attnbench reproduce: runs recipes, stores their figures and verdicts, and makes the page.
#include "harness/runner/reproduce.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>

#include "harness/cli/command.hpp"
#include "harness/cli/recipe_file.hpp"
#include "harness/cli/reproduction_summary.hpp"
#include "harness/cli/script.hpp"
#include "harness/cli/terminal.hpp"
#include "harness/figures/draw_figures.hpp"
#include "harness/runner/declared_recipe.hpp"
#include "harness/store/store.hpp"
#include "harness/workers/pool.hpp"

namespace attnbench::reproduce_command {
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

// Leaves out recipes that measure a model which `attnbench fetch` gets, where it is not there, and says so.
void leave_out_unfetched(std::vector<std::string>& names, RecipeSize size) {
  std::vector<std::string> without;
  std::erase_if(names, [&](const std::string& name) {
    try {
      written(find<RecipeEntry>(name), size);
      return false;
    } catch (const NotFetched&) {
      without.push_back(name);
      return true;
    }
  });
  if (!without.empty())
    std::cout << fmt::format("left out, for want of SmolLM2: {}; get it with attnbench fetch smollm2\n",
                             fmt::join(without, ", "));
}

void require_effect(const std::vector<Setting>& settings, const std::vector<std::string>& recipes, RecipeSize size) {
  if (settings.empty()) return;
  std::vector<RecipeCell> cells;
  for (const auto& name : recipes) {
    const auto more = written(find<RecipeEntry>(name), size, settings)->cells().all();
    cells.insert(cells.end(), more.begin(), more.end());
  }
  if (const auto idle = without_effect(settings, cells); !idle.empty())
    throw Misuse(
        fmt::format("reproduce: --set {}={} changes nothing: no method, input or experiment of {} leaves a parameter "
                    "'{}' at another value; see `attnbench plan` and `attnbench describe` for what they have",
                    idle[0].name, idle[0].value, recipes.size() == 1 ? recipes[0] : "these recipes", idle[0].name));
}

std::string source_of(const Statement& statement) {
  return statement.source.empty() ? "this project's own finding" : statement.source;
}

// Prints "HOLDS     statement (region)", and below it the numbers that decided, the statement's source, and what
// differs from the reference or from the expectation.
void print(const std::string& recipe, const Verdict& verdict, const Tally& tally) {
  const auto& [statement, finding] = verdict;
  const std::string region = finding.region.empty() ? "" : fmt::format(": {}", finding.region);
  std::cout << fmt::format("  {:<10}{}{}\n", to_string(finding.ruling), statement.text, region);
  std::cout << fmt::format("{:12}{}\n{:12}[{}]\n", "", finding.numbers, "", source_of(statement));
  if (!means_anything(tally.size)) return;
  const auto [result, there] = compared(recipe, verdict, tally.reference);
  if (result == BesideReference::Result::different)
    std::cout << fmt::format("{:12}NOT AS IN THE REFERENCE: there it is {}, at {} size\n", "", to_string(there->ruling),
                             there->size);
  if (result == BesideReference::Result::unexpected)
    std::cout << fmt::format("{:12}NOT AS EXPECTED: the statement was expected to be {}\n", "",
                             to_string(statement.expected));
}

// An empty tally with the reference, or with the reason why nothing is compared with it.
Tally tally_of(RecipeSize size, const Variation& variation) {
  Tally tally{.size = size};
  if (!means_anything(size)) return tally;
  const auto file = reference_file();
  if (!variation.settings.empty())
    tally.no_reference = "it was made without --set";
  else if (variation.seeds > 1)
    tally.no_reference = "it was made with one seed";
  else if (!std::filesystem::exists(file))
    tally.no_reference = file.string() + " is missing";
  else
    tally.reference = read_reference(file);
  return tally;
}

std::string exit_codes() {
  return wrapped(
             "Outcomes are compared with results/reference, a reproduction with --full; with what the author expected "
             "where the reference lacks the statement. OPEN differs from nothing. With --set or several seeds nothing "
             "is compared with the reference, and at --smoke sizes nothing at all. Exit codes: 0 every cell was "
             "measured or skipped with a reason, 1 a cell failed (crashed, ran out of time or memory) or, with "
             "--strict, an outcome differs, 2 misuse.",
             terminal_width(), 0) +
         "\n";
}

// Prints the statements of a recipe without running anything.
void explain(const RecipeEntry& entry, RecipeSize size) {
  std::cout << fmt::format("{}: {}\n{}\n", entry.text.name, entry.text.summary, entry.text.formula);
  size_t number = 0;
  for (const Judgement& judgement : written(entry, size)->judgements()) {
    const Statement& statement = judgement.statement;
    std::cout << fmt::format("\n{}. {}\n", ++number, statement.text);
    const auto line = [](const char* name, const std::string& text) {
      if (!text.empty()) std::cout << fmt::format("   {:<12}{}\n", name, text);
    };
    line("source", source_of(statement));
    if (statement.conformance) line("kind", "code: an identity or a bound by construction, which tests this program");
    line("quotation", statement.quotation.empty() ? "" : fmt::format("\"{}\"", statement.quotation));
    line("paraphrase", statement.paraphrase);
    line("definition", statement.definition);
    line("threshold", statement.threshold);
    line("expected", fmt::format("{}, because {}", to_string(statement.expected), statement.because));
  }
}

// The experiment that a recipe runs first: the topic under which the summary counts it.
std::string topic_of(const Recipe& recipe) {
  return recipe.runs().empty() ? "closed forms" : parse_spec(recipe.runs().front().request.experiment).name;
}

// "rank  3 HOLDS, 1 DEPENDS  120 run  4.2 s"
void print_line(const Reproduction& done, const RunSummary& total) {
  std::cout << fmt::format(
      "{:<30}{:<36}{:>5} run {:>5} there already  {:>6.1f} s{}{}\n", done.recipe, words_of([&] {
        Rulings rulings;
        for (const Verdict& verdict : done.verdicts) ++rulings[verdict.finding.ruling];
        return rulings;
      }()),
      total.ran, total.already, done.seconds,
      total.failed_before ? fmt::format("  {} of those there had failed", total.failed_before) : "",
      total.not_done ? fmt::format("  {} not done: {}", total.not_done, total.first_reason) : "");
}

int reproduce_command(const std::vector<std::string>& words) {
  std::vector<std::string> names, settings;
  std::string results, output;
  Variation variation;
  bool smoke = false, quick = false, full = false, only_explain = false, timed = false, untimed = false,
       verbose = false, strict = false;
  options::options_description visible("options");
  visible.add_options()("recipe", options::value(&names),
                        "recipes, or files that state one (.toml; docs/sharing.md) (default: all; see attnbench list "
                        "recipes)")("quick", options::bool_switch(&quick), "small sizes (default)")(
      "full", options::bool_switch(&full), "the published sizes")("smoke", options::bool_switch(&smoke),
                                                                  "tiny sizes: shows that everything runs, no more")(
      "timed", options::bool_switch(&timed),
      "only recipes that measure time: run these with nothing else on the machine")(
      "untimed", options::bool_switch(&untimed),
      "only recipes that measure no time: other work changes none of their numbers")(
      "verbose,v", options::bool_switch(&verbose),
      "print each verdict with its numbers, as the page does (a single recipe always does)")(
      "explain", options::bool_switch(&only_explain),
      "print each statement with its quotation, definition, threshold and expectation, and run nothing")(
      "strict", options::bool_switch(&strict),
      "exit with 1 also if an outcome differs from the reference or from what was expected (see below)")(
      "retry", options::bool_switch(&variation.retry),
      "run cells again that failed, crashed, timed out or ran out of memory")(
      "seeds", options::value(&variation.seeds)->value_name("K")->default_value(1),
      "make each verdict with so many seeds: one that flips is OPEN")(
      "set", options::value(&settings)->value_name("NAME=VALUE"),
      "a parameter wherever a recipe leaves it as it is by default, such as scale=0.7 (repeatable)")(
      "results", options::value(&results)->value_name("FILE")->default_value("results/attnbench.db"), "results file")(
      "output,o", options::value(&output)->value_name("FOLDER")->default_value("results/report"),
      "for the page and the figures");
  if (!parse_arguments("reproduce", visible, words, {{"recipe", -1}})) return 0;
  if (smoke + quick + full > 1) throw Misuse("reproduce: --smoke, --quick and --full exclude each other; keep one");
  if (strict && smoke)
    throw Misuse("reproduce: --strict compares outcomes, and those of --smoke have no meaning; keep one of the two");
  constexpr Index most_seeds = 100;
  if (variation.seeds < 1 || variation.seeds > most_seeds)
    throw Misuse(fmt::format("reproduce: --seeds {}: expected 1 to {}", variation.seeds, most_seeds));
  const RecipeSize size = smoke ? RecipeSize::smoke : full ? RecipeSize::full : RecipeSize::quick;
  if (names.empty()) {
    names = catalogue("recipes").names();
    leave_out_unfetched(names, size);
  }
  for (auto& name : names) {  // report misuse before anything runs
    if (names_recipe_file(name)) name = add_recipe(name);
    if (const auto& entry = find<RecipeEntry>(name); !entry.file.empty()) require_sound(entry, size);
  }
  if (timed && untimed) throw Misuse("reproduce: --timed and --untimed exclude each other; keep one");
  if (timed || untimed)
    std::erase_if(names, [&](const std::string& name) {
      return measures_time(*written(find<RecipeEntry>(name), size)) != timed;
    });
  if (names.empty()) throw Misuse(fmt::format("reproduce: none of these recipes is {}", timed ? "timed" : "untimed"));
  if (only_explain) {
    for (const auto& name : names) {
      if (name != names.front()) std::cout << "\n";
      explain(find<RecipeEntry>(name), size);
    }
    return 0;
  }
  variation.settings = parse_settings(settings);
  require_effect(variation.settings, names, size);
  const auto folder = std::filesystem::absolute(output).lexically_normal();
  require_folder("reproduce", folder);
  Tally tally = tally_of(size, variation);
  {
    Store store(results);
    std::vector<const RecipeEntry*> recipes;
    for (const auto& name : names) recipes.push_back(&find<RecipeEntry>(name));
    const auto [expected, parts] = forecast(recipes, size, variation, store, results);
    if (expected.seconds > 0)
      std::cout << fmt::format("{} recipe{}: {}\n", names.size(), names.size() == 1 ? "" : "s", expected.text())
                << std::flush;
    const auto run_id = begin_run(store);
    const KeptWorkers workers;
    const bool details = verbose || names.size() == 1, lines = details || isatty(STDOUT_FILENO) == 0;
    WholeProgress progress(parts);
    for (const auto& name : names) {
      RunSummary total;
      const auto done = reproduce(find<RecipeEntry>(name), size, variation, store, run_id, total);
      if (!done) {
        std::cout << "interrupted; the same command goes on\n";
        return 130;
      }
      progress.part_is_done();
      tally.add(*done, topic_of(*written(find<RecipeEntry>(name), size)), total);
      if (!lines) continue;
      progress.hide();
      print_line(*done, total);
      if (details)
        for (const Verdict& verdict : done->verdicts) print(name, verdict, tally);
      std::cout << std::flush;
    }
  }
  std::cout << summary_of(tally, text_width());
  std::cout << "the page with the figures: " << std::flush;
  draw_figures(results, better_of);
  const int drawn = run_script("report.py", {results, "-o", folder.string(), "--bundle"});
  if (drawn != 0) return drawn;
  return exit_code(tally, strict);
}

const bool registered = add(
    CommandEntry{.text = {.name = "reproduce",
                          .summary = "run the recipes, judge them and make the page with their figures",
                          .formula = "reproduce [RECIPE|FILE.toml...] [--quick|--full] [--timed|--untimed] [--explain] "
                                     "[--strict] [--retry] [--seeds K] [--set NAME=VALUE] [--results FILE] [-o DIR]"},
                 .run = reproduce_command,
                 .examples = {"reproduce", "reproduce sign-fix performer-fig4 --seeds 5", "reproduce rank --explain"},
                 .details = exit_codes,
                 .names = {"recipes"}});

}  // namespace
}  // namespace attnbench::reproduce_command
