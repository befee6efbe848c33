// attnbench report: figures, tables and a page from results files; or a page about one method, which it measures.
#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <optional>
#include <set>

#include "experiments/commands/method_page.hpp"
#include "harness/cli/command.hpp"
#include "harness/cli/script.hpp"
#include "harness/core/bibliography.hpp"
#include "harness/figures/draw_figures.hpp"
#include "harness/machine/resources.hpp"
#include "harness/plugins/plugins.hpp"
#include "harness/runner/run.hpp"
#include "harness/store/citable.hpp"
#include "harness/store/store.hpp"

namespace attnbench::report_command {
namespace {

// Runs the cells that the page lacks and returns the name of its figure; empty if the user interrupted.
std::optional<std::string> measure(const MethodPage& page, const std::string& results) {
  Store store(results);
  const auto run_id = begin_run(store);
  RunSummary total;
  for (const auto& [asked, cells] : page.recipe->runs()) {
    RunRequest request = asked;
    // Timings use one thread, as in reproduce.
    request.threads = request.timing() ? 1 : allowed_cores();
    total += run(request, store, run_id);
    if (total.interrupted) return std::nullopt;
  }
  store.put_figure("method", page.figure.name, 0, page.figure.json);
  std::cout << fmt::format("{} replicates run, {} were there already; in {}\n", total.ran, total.already, results);
  if (total.not_done > 0) std::cout << fmt::format("{} not done; the first: {}\n", total.not_done, total.first_reason);
  std::cout << std::flush;
  return "method/" + page.figure.name;
}

// Prints the BibTeX entries of everything in those files. A source without an entry, such as a book, becomes a comment.
int cite(const std::vector<std::string>& files) {
  std::set<std::string> references;
  for (const auto& file : files) {
    auto [methods, sources] = citable(file);
    references.merge(sources);
    for (const auto& method : methods) references.merge(references_of("methods", {"methods", method}));
  }
  auto entries = bibliography();
  for (const auto& file : bibliographies_of_plugins()) add_bibliography(entries, file);
  std::map<std::string, std::string> texts;  // by key: several names may be of one entry
  for (const auto& reference : references) {
    const auto cited = cited_keys(reference, entries);
    bool all = !cited.empty();
    for (const auto& key : cited)
      if (const auto entry = entries.find(key); entry != entries.end())
        texts.emplace(entry->second.key, entry->second.text);
      else
        all = false;
    if (!all && !reference.empty() && !reference.starts_with("none")) std::cout << "% " << reference << "\n";
  }
  for (const auto& [key, text] : texts) std::cout << "\n" << text << "\n";
  return 0;
}

int report_command(const std::vector<std::string>& words) {
  std::vector<std::string> files;
  std::string output, method, input, results;
  bool citing = false;
  options::options_description visible("options");
  visible.add_options()("file", options::value(&files), "results files (default: results/attnbench.db)")(
      "output,o", options::value(&output)->value_name("FOLDER"),
      "for the page and the figures [results/report; of a method: results/report/METHOD]")(
      "method,m", options::value(&method)->value_name("SPEC"),
      "one method on one page instead: measures what the page shows and is not there yet")(
      "input,i", options::value(&input)->value_name("SPEC"),
      "of --method: the head that is looked at [model, a real head]")(
      "results", options::value(&results)->value_name("FILE"), "of --method: results file [results/attnbench.db]")(
      "cite", options::bool_switch(&citing),
      "print the BibTeX of the methods, and of what the verdicts judge, instead of the page");
  if (!parse_arguments("report", visible, words, {{"file", -1}})) return 0;
  if (method.empty()) {
    if (!input.empty() || !results.empty())
      throw Misuse("report: --input and --results belong to --method; give results files by themselves, or a --method");
    if (files.empty()) files = {"results/attnbench.db"};
    if (citing) return cite(files);
    const UnitedResults results_to_draw(files, true);
    draw_figures(results_to_draw.file(), better_of);
    return run_script("report.py", {results_to_draw.file(), "-o", output.empty() ? "results/report" : output});
  }
  if (citing) throw Misuse("report: --cite beside --method; expected results files: give them by themselves");
  if (!files.empty())
    throw Misuse(fmt::format(
        "report: {} beside --method, which measures and keeps what it measured: give one file as --results {}",
        files[0], files[0]));
  if (results.empty()) results = "results/attnbench.db";
  const MethodPage page = method_page(method, input.empty() ? "model" : input);
  const auto figure = measure(page, results);
  if (!figure) {
    std::cout << "interrupted; the same command goes on\n";
    return 130;
  }
  if (output.empty()) output = "results/report/" + page.figure.name;
  draw_figures(results, better_of);
  return run_script("report.py", {results, "-o", output, "--figure", *figure});
}

const bool registered = add(CommandEntry{
    .text = {.name = "report",
             .summary = "figures (SVG, PDF), tables (CSV) and one page: of results files or of a method",
             .formula =
                 "report [FILE...] [-o DIR], report --cite [FILE...], report --method SPEC [--input SPEC] [-o DIR]"},
    .run = report_command,
    .makes_methods = true,
    .examples = {"report", "report results/attnbench.db -o page", "report --method performer:m=64", "report --cite"}});

}  // namespace
}  // namespace attnbench::report_command
