// attnbench plan: prints what a run would do, how much of it is done, and how long the rest will take.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "harness/cli/command.hpp"
#include "harness/cli/request.hpp"
#include "harness/machine/memory_limit.hpp"
#include "harness/runner/backlog.hpp"
#include "harness/store/store.hpp"

namespace attnbench::plan_command {
namespace {

constexpr size_t most_printed = 40, ends_printed = 16;  // of a longer list, print both ends

// The spec, and in brackets the values that it leaves out and that tell this cell from others: those of axes and, with
// `choices`, the budget and the entries that the method is made of.
std::string with_defaults(const Params& params, const std::vector<Axis>& axes, bool choices) {
  const Spec given = parse_spec(params.spec());
  std::vector<std::string> left_out;
  for (const Parameter& p : params.declared()) {
    const bool swept = std::any_of(axes.begin(), axes.end(), [&](const Axis& axis) { return axis.name == p.name; });
    const bool said = std::any_of(given.arguments.begin(), given.arguments.end(),
                                  [&](const auto& argument) { return argument.first == p.name; });
    if (!said && (swept || (choices && (p.budget || p.kind == Parameter::Kind::entry))))
      left_out.push_back(fmt::format("{}={}", p.name, params.text(p.name)));
  }
  return left_out.empty() ? params.spec() : fmt::format("{} ({})", params.spec(), fmt::join(left_out, ", "));
}

void print_cell(const Cell& cell, const std::vector<Axis>& axes, const std::optional<Match>& match) {
  const auto& [shape, heads, logit_scale, rounding] = cell.problem;
  std::cout << fmt::format("{}  {}  {}  n={} d={} dv={}{}{}{}{}\n", with_defaults(cell.experiment, axes, false),
                           with_defaults(cell.method, axes, true), with_defaults(cell.input, axes, false), shape.nk,
                           shape.d, shape.dv, shape.mask.causal ? " causal" : "",
                           heads == 1 ? "" : fmt::format(" heads={}", heads),
                           logit_scale == 1 ? "" : fmt::format(" logit_scale={}", logit_scale),
                           rounding == Rounding::none ? "" : " round=" + to_string(rounding));
  if (!match) return;
  if (const auto cost = cost_of(cell.method, shape, match->cost))
    std::cout << fmt::format("    costs {:.3g}, {:.2f} of what was asked\n", *cost, *cost / match->value);
}

void print_cells(const Backlog& backlog, const RunRequest& request, bool all) {
  const size_t count = backlog.entries.size();
  for (size_t place = 0; place < count; ++place) {
    if (!all && count > most_printed && place == ends_printed) {
      std::cout << fmt::format("... {} more; --all prints them\n", count - 2 * ends_printed);
      place = count - ends_printed;
    }
    print_cell(*backlog.entries[place].cell, request.sweep, request.match);
  }
}

int plan_command(const std::vector<std::string>& words) {
  const auto arguments = parse_request("plan", words);
  if (!arguments) return 0;
  const RunRequest& request = arguments->request;
  const auto cells = expand(request);
  std::optional<Store> store;
  if (std::filesystem::exists(arguments->results)) store.emplace(Store::open_existing(arguments->results));
  const Store* there = store ? &*store : nullptr;
  const Backlog backlog = backlog_of(request, cells, there ? ended_units(request, *there) : EndedUnits(), there);
  print_cells(backlog, request, arguments->all);
  double largest = 0;
  size_t missing = 0, decided = 0;
  for (const auto& entry : backlog.entries) {
    largest = std::max(largest, peak_bytes_of(*entry.cell));
    missing += entry.missing.size();
    decided += entry.stopping && entry.stopping->state != Stopping::State::open;
  }
  const size_t count = backlog.entries.size();
  std::cout << (request.until ? fmt::format("{} cells, {} of them decided, {} replicates done already, at most {} each",
                                            count, decided, backlog.already, request.replicates)
                              : fmt::format("{} cells x {} replicates, {} done already", count, request.replicates,
                                            backlog.already))
            << fmt::format("; a cell takes at most about {}\n", memory_size(largest));
  std::cout << remark_on_failed(backlog.failed);
  if (missing == 0) {
    std::cout << "nothing is missing\n";
    return 0;
  }
  const auto past =
      there ? past_cells(arguments->results, parse_spec(request.experiment).name) : std::vector<PastCell>();
  const RunEstimate expected = estimate(request, backlog, past);
  std::cout << fmt::format("{} replicates are missing{}: {}; on {} threads, about {} of memory at once\n", missing,
                           request.until ? " up to the next stage" : "", expected.text(), request.threads,
                           memory_size(expected.bytes));
  return 0;
}

const bool registered =
    add(CommandEntry{.text = {.name = "plan",
                              .summary = "the cells of a run, how many are done, and how long the rest will take",
                              .formula = "plan EXPERIMENT --method SPEC... [--input SPEC...] [OPTIONS]"},
                     .run = plan_command,
                     .examples = {"plan rank --methods softmax linear --sweep n=128:1024:x2"},
                     .names = {"experiments"},
                     .groups = request_groups()});

}  // namespace
}  // namespace attnbench::plan_command
