// attnbench run: executes a request.
#include "harness/runner/run.hpp"

#include <fmt/format.h>

#include <iostream>
#include <set>

#include "harness/cli/command.hpp"
#include "harness/cli/request.hpp"
#include "harness/cli/shown_results.hpp"
#include "harness/cli/specs.hpp"
#include "harness/cli/terminal.hpp"
#include "harness/experiment/cell_row.hpp"
#include "harness/experiment/experiment.hpp"
#include "harness/figures/run_figure.hpp"
#include "harness/runner/audit.hpp"
#include "harness/runner/figure.hpp"
#include "harness/store/store.hpp"

namespace attnbench::run_command {
namespace {

constexpr double worth_telling = 60;  // seconds
constexpr size_t most_listed = 36;

// Prints each warning about the methods once.
void print_caveats(const std::vector<Cell>& cells) {
  std::set<std::string> caveats;
  for (const Cell& cell : cells)
    for (const auto& caveat : find<MethodEntry>(cell.method.name()).caveats(cell.method, cell.problem.shape))
      if (caveats.insert(caveat).second) print_message("note: " + caveat);
}

// Says which methods cost something else than --match asks for: they have no budget, or none that reaches it.
void print_unmatched(const std::vector<Cell>& cells, const Match& match) {
  std::map<std::string, double> shares;  // the farthest from 1 by method
  for (const Cell& cell : cells)
    if (const auto cost = cost_of(cell.method, cell.problem.shape, match.cost); cost && *cost > 0) {
      double& share = shares.try_emplace(cell.method.spec(), 1).first->second;
      const double here = *cost / match.value;
      if (std::abs(std::log(here)) > std::abs(std::log(share))) share = here;
    }
  constexpr double near = 1.25;
  for (const auto& [method, share] : shares)
    if (share > near || share < 1 / near)
      print_message(
          fmt::format("note: {} costs {:.2g} of what --match asks for: no budget of it comes nearer", method, share));
}

void print_notes(const RunRequest& request, const std::vector<Cell>& cells) {
  print_caveats(cells);
  const bool one_head = !find<ExperimentEntry>(parse_spec(request.experiment).name).whole_model;
  for (const std::string& input : one_head ? request.inputs : std::vector<std::string>())
    if (const std::string remark = remark_on_heads(input); !remark.empty()) print_message("note: " + remark);
  if (request.match) print_unmatched(cells, *request.match);
}

// Announces a long run at its start. Measures the machine only if the cost model alone already predicts a long run.
void print_estimate(const RunRequest& request, const Backlog& backlog, const std::string& results) {
  double modelled = 0;
  for (const auto& entry : backlog.entries)
    modelled += static_cast<double>(entry.missing.size()) * seconds_by_model(*entry.cell, nominal_rates);
  if (modelled / request.threads < worth_telling / 10) return;
  const RunEstimate expected = estimate(request, backlog, past_cells(results, parse_spec(request.experiment).name));
  if (expected.high > worth_telling) print_message("this will take " + expected.text());
}

// Prints "3 crashed, 1 timed out, 40 more", then a table of the endings.
void print_endings(const RunSummary& summary) {
  if (summary.not_done == 0) return;
  std::map<std::string, size_t> counts;
  size_t rest = summary.not_done;
  for (const auto& line : summary.endings) {
    counts[to_string(line.ending.kind)] += line.replicates;
    rest -= line.replicates;
  }
  std::string text;
  for (const auto& [ending, count] : counts) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, ending);
  if (rest > 0) text += fmt::format(", {} more", rest);
  std::cout << fmt::format("{} not done ({}):\n{}", summary.not_done, text, table_of_endings(summary));
}

void print_ambiguous(const RunSummary& summary, double relative) {
  if (summary.ambiguous.empty()) return;
  std::cout << fmt::format("{} cells are UNDECIDED: the cap came before {:.3g} of the value\n",
                           summary.ambiguous.size(), relative);
  for (size_t i = 0; i < std::min(most_listed, summary.ambiguous.size()); ++i)
    std::cout << "  " << summary.ambiguous[i] << "\n";
  if (summary.ambiguous.size() > most_listed)
    std::cout << fmt::format("  and {} more\n", summary.ambiguous.size() - most_listed);
}

int audit_command(const RunArguments& arguments, const std::vector<Cell>& cells) {
  const Audit found = audit(arguments.request, cells, Store::open_existing(arguments.results), arguments.limits);
  std::cout << text_of(found, arguments.results);
  if (!found.interrupted) return found.differences.empty() ? 0 : 1;
  std::cout << "interrupted: the others were not measured again\n";
  return 130;
}

// The numbers of this run's cells, as `attnbench show` prints them. A table of very many cells would take gigabytes (7
// GB for a million) to show the few that fit a terminal.
void print_table(const RunRequest& request, const std::vector<Cell>& cells, const std::string& results) {
  constexpr size_t most = 20'000;
  if (cells.size() > most) {
    std::cout << fmt::format("attnbench show {} --where NAME=VALUE prints a table of some of these cells\n", results);
    return;
  }
  std::set<std::string> keys;
  for (const Cell& cell : cells) keys.insert(row_of(cell, request.timing()).key);
  const std::string experiment = parse_spec(request.experiment).name;
  std::vector<StoredCell> stored = selected_cells(results, {{"experiment", experiment}});
  std::erase_if(stored, [&](const StoredCell& cell) { return !keys.contains(cell.key); });
  constexpr size_t before = 8;  // lines above the table that should stay on the screen
  const size_t lines = terminal_lines();
  const std::string table =
      shown_results(results, stored, experiment, "", lines > 2 * before ? lines - before : before);
  if (!table.empty()) std::cout << "\n" << table;
}

int run_cells(const std::vector<std::string>& words) {
  const auto arguments = parse_request("run", words);
  if (!arguments) return 0;
  const RunRequest& request = arguments->request;
  const auto cells = expand(request);  // reports misuse before it creates a results file
  if (arguments->audit) return audit_command(*arguments, cells);
  print_notes(request, cells);
  Store store(arguments->results);
  const auto run_id = begin_run(store);
  const auto summary = run(request, cells, store, run_id, arguments->limits,
                           [&](const Backlog& backlog) { print_estimate(request, backlog, arguments->results); });
  const Figure figure = figure_of_run(parse_spec(request.experiment).name);
  store.put_figure(recipe_of_runs, figure.name, 0, figure.json);
  const std::string replicates =
      request.until ? fmt::format("at most {}", request.replicates) : std::to_string(request.replicates);
  std::cout << fmt::format(
      "{} cells x {} replicates: {} run, {} were there already; in {} (attnbench report draws it)\n", summary.cells,
      replicates, summary.ran, summary.already, arguments->results);
  std::cout << remark_on_failed(summary.failed_before);
  for (const auto& [note, count] : summary.notes) std::cout << fmt::format("{} replicates: {}\n", count, note);
  print_endings(summary);
  if (request.until) print_ambiguous(summary, request.until->relative);
  if (summary.interrupted) {
    std::cout << "interrupted; the same command goes on\n";
    return 130;
  }
  print_table(request, cells, arguments->results);
  const bool nothing = summary.ran > 0 && summary.not_done == summary.ran && summary.already == 0;
  return nothing || summary.failed + summary.failed_before > 0 ? 1 : 0;
}

const bool registered = add(
    CommandEntry{.text = {.name = "run",
                          .summary = "measure: an experiment over methods, inputs and axes, into a results file",
                          .formula = "run EXPERIMENT --method SPEC... [--input SPEC...] [OPTIONS]"},
                 .run = run_cells,
                 .examples = {"run attention-error --methods performer nystrom uniform -n 512,1024 --replicates 8",
                              "run kernel-error --method performer --sweep features=positive,trig --sweep m=16:256:x2",
                              "run rank --methods softmax performer --sweep n=512:8192:x4",
                              "run speed --methods performer,linear -n 256:4096:x2 --threads 1",
                              "run attention-error --method performer --input heads.npz,head=all"},
                 .names = {"experiments"},
                 .groups = request_groups()});

}  // namespace
}  // namespace attnbench::run_command
