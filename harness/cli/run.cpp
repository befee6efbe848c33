// attnbench run and attnbench plan: the same request, done or only counted.
#include "harness/runner/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iostream>
#include <set>

#include "harness/cli/command.hpp"
#include "harness/runner/figure.hpp"
#include "harness/store/environment.hpp"

namespace attnbench {
namespace {

struct Arguments {
  RunRequest request;
  std::string results;
  Limits limits = {};
};

// Numbers on the command line are read strictly: "12x" and "-3" are refused where a count is meant.
Index count_of(const std::string& option, const std::string& text) {
  const Axis axis = parse_axis(option + "=" + text);
  Index value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1)
    throw Misuse(fmt::format("--{} {}: expected an integer of at least 1", option, text));
  return value;
}

std::optional<Arguments> parse(const std::string& command, const std::vector<std::string>& words) {
  options::options_description visible("options");
  std::vector<std::string> methods, inputs, sweeps, n, d;
  std::string experiment, match, dv, heads, replicates, threads, seed, precision, round, results, logit_scale, timeout,
      memory;
  bool causal = false, bidirectional = false;
  visible.add_options()("experiment", options::value(&experiment), "what to measure: attnbench list experiments")(
      "method,m", options::value(&methods)->composing(), "method specs, such as performer:m=64 (repeatable)")(
      "input,i", options::value(&inputs)->composing(), "input specs (repeatable; default gaussian)")(
      "n,n", options::value(&n)->composing(), "sequence lengths (default: what the input has, or 1024)")(
      "d,d", options::value(&d)->composing(), "key sizes (default: what the input has, or 64)")(
      "dv", options::value(&dv), "value size (default: what the input has, or d)")(
      "heads", options::value(&heads)->default_value("1"), "heads of a call (speed)")(
      "causal", options::bool_switch(&causal), "row i sees no later token (default: what the input is)")(
      "bidirectional", options::bool_switch(&bidirectional), "every row sees every token")(
      "precision", options::value(&precision), "f32 or f64 (default f64; f32 for timing)")(
      "round", options::value(&round)->default_value("none"),
      "f16 or bf16: inputs and results of products and exponentials rounded to it, kept in the precision")(
      "logit-scale", options::value(&logit_scale)->default_value("1"), "multiplies the logits")(
      "sweep", options::value(&sweeps)->composing(),
      "AXIS=VALUES: m=16,32,64 or n=1024:65536:x2 or m=64:512:+64; a size or a parameter (repeatable)")(
      "match", options::value(&match),
      "flops=, bytes=, features= or seconds=VALUE: each method's budget is chosen for that cost of a head and call")(
      "replicates,r", options::value(&replicates)->default_value("1"), "independent repetitions")(
      "threads", options::value(&threads), "default: all cores of the allowed set")(
      "seed", options::value(&seed)->default_value("1"), "base seed")(
      "timeout", options::value(&timeout)->default_value("3600"), "seconds that a replicate of a cell may take")(
      "memory", options::value(&memory), "that a worker may take, such as 4GB (default: its share of all)")(
      "results", options::value(&results)->default_value("results/attnbench.db"), "results file");
  if (!parse_arguments(command, visible, words, {{"experiment", 1}})) return std::nullopt;
  if (experiment.empty()) throw Misuse(command + ": no experiment given; see attnbench list experiments");
  if (methods.empty()) throw Misuse(command + ": no --method given; see attnbench list methods");
  if (causal && bidirectional) throw Misuse(command + ": --causal and --bidirectional exclude each other; keep one");

  Arguments arguments{{.experiment = experiment, .methods = methods, .inputs = inputs}, results};
  auto& request = arguments.request;
  if (request.inputs.empty()) request.inputs = {"gaussian"};
  for (const auto& value : n) request.n.push_back(count_of("n", value));
  for (const auto& value : d) request.d.push_back(count_of("d", value));
  if (!dv.empty()) request.dv = count_of("dv", dv);
  request.heads = count_of("heads", heads);
  if (causal) request.causal = true;
  if (bidirectional) request.causal = false;
  const bool timing = find<ExperimentEntry>(parse_spec(experiment).name).timing();
  if (precision.empty()) precision = timing ? "f32" : "f64";
  if (precision != "f32" && precision != "f64") throw Misuse("--precision " + precision + ": expected f32 or f64");
  request.precision = precision == "f32" ? Precision::f32 : Precision::f64;
  request.rounding = parse_rounding(round);
  if (!match.empty()) request.match = parse_match(match);
  request.replicates = count_of("replicates", replicates);
  request.threads =
      threads.empty() ? allowed_cores() : static_cast<int>(std::min<Index>(1024, count_of("threads", threads)));
  for (const auto& text : sweeps) request.sweep.push_back(parse_axis(text));
  request.sweep.push_back({"logit_scale", {logit_scale}});
  std::erase_if(request.sweep, [&](const Axis& axis) {  // --sweep logit_scale=... beats the single value
    return &axis == &request.sweep.back() && std::count_if(request.sweep.begin(), request.sweep.end(),
                                                           [](const Axis& a) { return a.name == "logit_scale"; }) > 1;
  });
  arguments.limits.seconds = static_cast<double>(count_of("timeout", timeout));
  if (!memory.empty())
    arguments.limits.bytes = 1e6 * static_cast<double>(count_of("memory", memory.substr(0, memory.find("MB"))));
  const auto [end, error] = std::from_chars(seed.data(), seed.data() + seed.size(), request.seed);
  if (error != std::errc() || end != seed.data() + seed.size())
    throw Misuse("--seed " + seed + ": expected an integer from 0 to 2^64 - 1");
  return arguments;
}

int run_command(const std::vector<std::string>& words) {
  const auto arguments = parse("run", words);
  if (!arguments) return 0;
  std::set<std::string> caveats;
  for (const Cell& cell : expand(arguments->request))  // misuse shows before a results file is made
    for (const auto& caveat : find<MethodEntry>(cell.method.name()).caveats(cell.method, cell.problem.shape))
      if (caveats.insert(caveat).second) std::cerr << "attnbench: note: " << caveat << "\n";
  Store store(arguments->results);
  const auto summary =
      run(arguments->request, store, store.begin_run(command_line, environment_json()), arguments->limits);
  const Figure figure = figure_of_run(arguments->request);
  store.put_figure("runs", figure.name, 0, figure.json);
  std::cout << fmt::format(
      "{} cells x {} replicates: {} run, {} were there already; in {} (attnbench report draws it)\n", summary.cells,
      arguments->request.replicates, summary.ran, summary.already, arguments->results);
  for (const auto& [note, replicates] : summary.notes)
    std::cout << fmt::format("{} replicates: {}\n", replicates, note);
  if (summary.not_done > 0) std::cout << fmt::format("{} not done:\n{}", summary.not_done, table_of_endings(summary));
  if (!summary.interrupted) return 0;
  std::cout << "interrupted; the same command goes on where this one ended\n";
  return 130;
}

int plan_command(const std::vector<std::string>& words) {
  const auto arguments = parse("plan", words);
  if (!arguments) return 0;
  const auto cells = expand(arguments->request);
  const bool timing = find<ExperimentEntry>(parse_spec(arguments->request.experiment).name).timing();
  std::optional<Store> store;
  if (std::filesystem::exists(arguments->results)) store.emplace(Store::open_existing(arguments->results));
  Index done = 0;
  double largest = 0;
  for (const auto& cell : cells) {
    if (store)
      for (const Index replicate : store->ended_replicates(cell.row(timing).key))
        done += replicate < arguments->request.replicates;
    largest = std::max(largest, cell_bytes(cell));
  }
  for (const auto& cell : cells) {
    const auto& shape = cell.problem.shape;
    std::cout << fmt::format(
        "{}  {}  {}  n={} d={} dv={}{}{}{}\n", cell.experiment.spec(), cell.method.spec(), cell.input.spec(), shape.nk,
        shape.d, shape.dv, shape.mask.causal ? " causal" : "",
        cell.problem.logit_scale == 1 ? "" : fmt::format(" logit_scale={}", cell.problem.logit_scale),
        cell.problem.rounding == Rounding::none ? "" : " round=" + to_string(cell.problem.rounding));
    if (arguments->request.match)
      if (const auto cost = cost_of(cell.method, shape, arguments->request.match->cost))
        std::cout << fmt::format("    costs {:.3g}, {:.2f} of what was asked\n", *cost,
                                 *cost / arguments->request.match->value);
  }
  std::cout << fmt::format("{} cells x {} replicates, {} done already; a cell takes at most about {:.3g} MB\n",
                           cells.size(), arguments->request.replicates, done, largest / 1e6);
  return 0;
}

const bool run_registered =
    add(CommandEntry{.text = {.name = "run",
                              .summary = "measure: an experiment over methods, inputs and axes, into a results file",
                              .formula = "run EXPERIMENT --method SPEC... [--input SPEC...] [OPTIONS]"},
                     .run = run_command});
const bool plan_registered =
    add(CommandEntry{.text = {.name = "plan",
                              .summary = "the cells that a run would do, and how many are done",
                              .formula = "plan EXPERIMENT --method SPEC... [--input SPEC...] [OPTIONS]"},
                     .run = plan_command});

}  // namespace
}  // namespace attnbench
