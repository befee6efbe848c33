// attnbench run: a request, done.
#include "harness/runner/run.hpp"

#include <fmt/format.h>

#include <iostream>
#include <set>

#include "harness/cli/command.hpp"
#include "harness/cli/request.hpp"
#include "harness/runner/figure.hpp"
#include "harness/store/environment.hpp"

namespace attnbench {
namespace {

constexpr double worth_telling = 60;  // seconds
constexpr size_t most_listed = 36;

// What users of the methods should know beforehand, once.
void print_caveats(const std::vector<Cell>& cells) {
  std::set<std::string> caveats;
  for (const Cell& cell : cells)
    for (const auto& caveat : find<MethodEntry>(cell.method.name()).caveats(cell.method, cell.problem.shape))
      if (caveats.insert(caveat).second) std::cerr << "attnbench: note: " << caveat << "\n";
}

// A long run says so at its start. The machine is measured only when the cost model alone speaks of so much.
void print_estimate(const RunRequest& request, const std::vector<Cell>& cells, const Store& store,
                    const std::string& results) {
  const Backlog backlog = backlog_of(request, cells, ended_units(request, store), &store);
  double least = 0;
  for (const auto& entry : backlog.entries)
    least += static_cast<double>(entry.missing.size()) * seconds_by_model(*entry.cell, nominal_rates);
  if (least / request.threads < worth_telling / 10) return;
  const RunEstimate expected = estimate(request, backlog, past_cells(results, parse_spec(request.experiment).name));
  if (expected.seconds > worth_telling) std::cerr << "attnbench: this will take " << expected.text() << "\n";
}

void print_endings(const RunSummary& summary) {
  for (const auto& [ending, replicates] : summary.endings)
    if (ending != to_string(Ending::Kind::done)) std::cout << fmt::format("{} {}\n", replicates, ending);
  if (summary.endings_not_done.empty()) return;
  size_t width = 6, listed = 0;
  for (const NotDone& one : summary.endings_not_done) width = std::max(width, one.method.size());
  std::cout << fmt::format("\n{:<{}}  {:>8}  {:>10}  {:<14}reason\n", "method", width, "n", "replicates", "ending");
  for (const NotDone& one : summary.endings_not_done) {
    std::cout << fmt::format("{:<{}}  {:>8}  {:>10}  {:<14}{}\n", one.method, width, one.n, one.replicates,
                             to_string(one.ending.kind), one.ending.reason);
    listed += one.replicates;
  }
  if (listed < summary.not_done) std::cout << fmt::format("and {} more: attnbench export\n", summary.not_done - listed);
}

void print_ambiguous(const RunSummary& summary, double relative) {
  if (summary.ambiguous.empty()) return;
  std::cout << fmt::format("{} cells are AMBIGUOUS: the cap came before {:.3g} of the value\n",
                           summary.ambiguous.size(), relative);
  for (size_t i = 0; i < std::min(most_listed, summary.ambiguous.size()); ++i)
    std::cout << "  " << summary.ambiguous[i] << "\n";
  if (summary.ambiguous.size() > most_listed)
    std::cout << fmt::format("  and {} more\n", summary.ambiguous.size() - most_listed);
}

int run_command(const std::vector<std::string>& words) {
  const auto arguments = parse_request("run", words);
  if (!arguments) return 0;
  const RunRequest& request = arguments->request;
  const auto cells = expand(request);  // misuse shows before a results file is made
  print_caveats(cells);
  Store store(arguments->results);
  print_estimate(request, cells, store, arguments->results);
  const auto summary = run(request, cells, store, store.begin_run(command_line, environment_json()), arguments->limits);
  const Figure figure = figure_of_run(request);
  store.put_figure("runs", figure.name, 0, figure.json);
  const std::string replicates =
      request.until ? fmt::format("at most {}", request.replicates) : std::to_string(request.replicates);
  std::cout << fmt::format(
      "{} cells x {} replicates: {} run, {} were there already; in {} (attnbench report draws it)\n", summary.cells,
      replicates, summary.ran, summary.already, arguments->results);
  for (const auto& [note, count] : summary.notes) std::cout << fmt::format("{} replicates: {}\n", count, note);
  print_endings(summary);
  if (request.until) print_ambiguous(summary, request.until->relative);
  if (!summary.interrupted) return 0;
  std::cout << "interrupted; the same command goes on\n";
  return 130;
}

const bool registered =
    add(CommandEntry{.text = {.name = "run",
                              .summary = "measure: an experiment over methods, inputs and axes, into a results file",
                              .formula = "run EXPERIMENT --method SPEC... [--input SPEC...] [OPTIONS]"},
                     .run = run_command});

}  // namespace
}  // namespace attnbench
