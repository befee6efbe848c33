// attnbench describe: prints everything about one entry, or about one configuration of it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iostream>

#include "harness/cli/command.hpp"
#include "harness/cli/metrics.hpp"
#include "harness/cli/pattern_drawing.hpp"
#include "harness/cli/promises.hpp"
#include "harness/cli/recipe_file.hpp"
#include "harness/cli/terminal.hpp"
#include "harness/core/needs.hpp"
#include "harness/experiment/experiment.hpp"
#include "harness/runner/reproduce.hpp"

namespace attnbench::describe_command {
namespace {

void print_line(const std::string& label, const std::string& text) {
  if (!text.empty()) std::cout << fmt::format("  {:<11} {}\n", label, wrapped(text, text_width(), 14, 14));
}

std::string allowed(const Parameter& p) {
  switch (p.kind) {
    case Parameter::Kind::integer:
      return fmt::format("{}integer from {:.0f} to {:.0f}", p.word.empty() ? "" : p.word + " or ", p.minimum,
                         p.maximum);
    case Parameter::Kind::real:
      return p.word.empty() ? fmt::format("number from {} to {}", p.minimum, p.maximum)
                            : fmt::format("{} or number from {} to below {:.6g}", p.word, p.minimum, p.maximum);
    case Parameter::Kind::flag:
      return "true or false";
    case Parameter::Kind::choice:
      return fmt::format("{}", fmt::join(p.choices, ", "));
    case Parameter::Kind::text:
      return "text";
    case Parameter::Kind::entry:
      return "one of the " + p.catalogue + "; see attnbench list " + p.catalogue;
    case Parameter::Kind::specs:
      return "specs of " + p.catalogue + ", each in brackets when it has parameters";
  }
  return {};
}

void print_parameters(const std::vector<Parameter>& parameters, bool published, const std::string& heading) {
  bool any = false;
  for (const auto& p : parameters) {
    if (p.published != published) continue;
    if (!any) std::cout << "\n" << bold(heading) << "\n";
    any = true;
    const std::string text =
        fmt::format("{} [default {}; {}]", p.help, p.default_value.empty() ? "none" : p.default_value, allowed(p));
    std::cout << fmt::format("  {:<14}{}\n", p.name, wrapped(text, text_width(), 16, 16));
  }
}

// Relative mean squared errors of the kernel estimate for pairs of unit vectors, with each ensemble that has a closed
// form. They show what a choice of ensemble gains, and which ensembles do harm. q is along (1, ..., 1), which matters
// to ensembles that prefer directions, and k in the plane of q and (1, -1, 1, ...).
void print_ensembles(const Params& params) {
  constexpr Index d = 64;
  constexpr double cosines[] = {1, 0.5, 0, -0.5, -1};
  const auto& entry = find<MethodEntry>(params.name());
  const auto errors = [&](const std::string& ensemble) {
    std::vector<double> all;
    const auto theory =
        entry.theory(params.with_entry("projection", ensemble), {.nq = 1, .nk = 1, .d = d, .dv = 1}, nullptr);
    if (theory && theory->variance)
      for (const double cosine : cosines) {
        std::array<double, d> q, k;
        for (size_t l = 0; l < q.size(); ++l) {
          q[l] = 1 / std::sqrt(static_cast<double>(d));
          k[l] = (cosine + (l % 2 == 0 ? 1 : -1) * std::sqrt(1 - cosine * cosine)) * q[l];
        }
        const Pair pair{.d = d, .q2 = 1, .k2 = 1, .qk = cosine, .q = q, .k = k};
        all.push_back(theory->variance(pair) / std::pow(theory->mean(pair), 2));
      }
    return all;
  };
  const auto print = [](const std::string& name, const std::vector<double>& numbers) {
    std::cout << fmt::format("  {:<23}", name);
    for (const double x : numbers) std::cout << fmt::format("{:>10.3g}", x);
  };
  const auto orthogonal = errors("orthogonal");
  if (orthogonal.empty()) return;
  std::cout << fmt::format(
      "\nrelative MSE of its kernel estimate, closed form, |q| = |k| = 1, d = {}, by the cosine of q and k\n", d);
  print("", {std::begin(cosines), std::end(cosines)});
  std::cout << "\n";
  for (const auto& name : catalogue("projections").names()) {
    const auto numbers = errors(name);
    if (numbers.empty()) continue;
    print(name, numbers);
    bool worse = false;
    for (size_t i = 0; i < numbers.size(); ++i) worse |= numbers[i] > orthogonal[i] * (1 + 1e-9) + 1e-14;
    std::cout << (name != "iid" && worse ? "   worse than orthogonal\n" : "\n");
  }
}

// Inputs beside Q, K and V: what a method needs, or what an input provides. counted: positions need not be given.
void print_needs(const char* title, const std::vector<Need>& needs, bool counted) {
  for (const Need& need : needs) {
    std::string text = fmt::format("{} ({})", need.name, words_of(need));
    if (!need.meaning.empty()) text += ": " + need.meaning;
    if (counted && need.values == Need::Values::positions) text += "; 0 to n - 1 unless an input gives them";
    print_line(title, text);
  }
}

// The names by which `attend --state` takes tensors, with their sizes for a small head.
void print_state(const Params& params) {
  const auto method = small_instance(params);
  if (!method) return;
  for (const auto& [name, tensor] : method->state())
    std::cout << fmt::format("  state tensor {}: {} x {} at n = {}, d = {}\n", name, tensor.rows(), tensor.cols(),
                             small_sizes.n, small_sizes.d);
}

void print_claims(const Params& params) {
  const auto& entry = find<MethodEntry>(params.name());
  entry.check(params);
  std::cout << fmt::format("\nclaims of {} (at n = {}, d = dv = {})\n", params.spec(), example_shape.nk,
                           example_shape.d);
  for (const Promise& promise : promises_of(params)) std::cout << "  " << promise.words << "\n";
  print_state(params);
  if (params.has("features") && params.has("projection")) print_ensembles(params);
  for (const auto& caveat : entry.caveats(params, example_shape)) std::cout << "\nnote: " << caveat << "\n";
  const Work work = entry.cost(params, example_shape);
  std::cout << fmt::format("\nwork of one call at that shape: {:.3g} FLOPs, {:.3g} exponentials\n", work.flops,
                           work.exps);
}

// Where the entry, and what its parameters name, differ from their references.
void print_departures(const std::string& plural, const Params& params) {
  print_line("departure", catalogue(plural).description(params.name()).departure);
  for (const auto& p : params.declared()) {
    if (p.kind == Parameter::Kind::entry)
      if (const auto& of_entry = catalogue(p.catalogue).description(params.text(p.name)).departure; !of_entry.empty())
        print_line("departure", fmt::format("{}={} {}", p.name, params.text(p.name), of_entry));
    if (p.kind == Parameter::Kind::specs)
      for (const Params& inner : params.all_nested(p.name)) print_departures(p.catalogue, inner);
  }
}

void print_recipe(const RecipeEntry& entry) {
  print_line("file", entry.file);
  std::cout << "\nstatements\n";
  size_t number = 0;
  std::vector<Statement> statements;
  try {
    statements = written(entry, RecipeSize::quick)->statements();
  } catch (const NotFetched& model) {
    std::cout << fmt::format("  need a model; {}\n", model.what());
  }
  for (const Statement& statement : statements)
    std::cout << fmt::format("  {}. {}{}\n", ++number, statement.text,
                             statement.source.empty() ? "" : fmt::format(" [{}]", statement.source));
  std::cout << fmt::format("attnbench reproduce --explain {} gives their quotations, definitions and thresholds\n",
                           entry.file.empty() ? entry.text.name : entry.file);
}

// Whether there is such a metric. Prints what each experiment that measures it says about it.
bool describe_metric(const std::string& name) {
  const Metrics metrics = all_metrics();
  const auto found = metrics.find(name);
  if (found == metrics.end()) return false;
  std::cout << bold("metric " + name) << "\n";
  for (const auto& [experiment, metric] : found->second) {
    const bool first = find<ExperimentEntry>(experiment).headline.metric == name;
    print_line(experiment, fmt::format("[{}] {}{}", metric.unit, metric.text,
                                       first ? "; the one that run, show and report print first" : ""));
  }
  std::cout << "\n";
  return true;
}

int run(const std::vector<std::string>& arguments) {
  options::options_description visible("options");
  std::string spec_text;
  PatternDrawing drawing;
  visible.add_options()("name", options::value(&spec_text),
                        "a name of any kind, a spec such as performer:m=64, or a recipe file (.json)")(
      "pattern", "instead, draw the keys that each row of a sparse method sees")(
      "tokens,n", options::value<Index>()->value_name("N")->notifier([&](Index n) { drawing.n = n; }),
      "with --pattern: how many tokens [64, or more until half of the pairs are left out]")(
      "causal", options::bool_switch(&drawing.causal), "with --pattern: under a causal mask")(
      "image", options::value(&drawing.image)->value_name("FILE"), "with --pattern: draw it to a .png or .svg as well");
  const auto given = parse_arguments("describe", visible, arguments, {{"name", 1}});
  if (!given) return 0;
  if (spec_text.empty()) throw Misuse("describe: no name given; see attnbench list");
  if (given->contains("pattern")) {
    draw_pattern(Params("methods", spec_text), drawing);
    return 0;
  }
  for (const char* option : {"tokens", "image"})
    if (given->contains(option)) throw Misuse(fmt::format("describe: --{} goes with --pattern; add it", option));
  if (drawing.causal) throw Misuse("describe: --causal goes with --pattern; add it");
  const Spec spec = parse_spec(names_recipe_file(spec_text) ? add_recipe(spec_text) : spec_text);
  bool found = describe_metric(spec_text);
  std::vector<std::string> known, aliases;
  for (const auto& [plural, entries] : catalogues()) {
    if (plural == "commands") continue;
    for (const auto& name : entries->names()) {
      known.push_back(name);
      const auto& more = entries->description(name).aliases;
      aliases.insert(aliases.end(), more.begin(), more.end());
    }
    if (!entries->has(spec.name)) continue;
    found = true;
    const Params params(plural, spec);
    const auto& text = entries->description(params.name());
    std::cout << bold(entries->kind() + " " + params.name()) << "\n";
    print_line("what", text.summary);
    print_line("also called", fmt::format("{}", fmt::join(text.aliases, ", ")));
    print_line("formula", text.formula);
    print_line("reference", text.reference);
    print_line("cost", text.cost);
    print_departures(plural, params);
    print_parameters(params.declared(), false, "parameters");
    print_parameters(
        params.declared(), true,
        "what published libraries do instead (no claim holds for it; attnbench check SPEC says which break)");
    if (plural == "methods") print_needs("needs", needs_of(params), true);
    if (plural == "inputs") print_needs("provides", find<InputEntry>(params.name()).provides, false);
    if (plural == "methods") print_claims(params);
    if (plural == "recipes") print_recipe(find<RecipeEntry>(spec.name));
    if (plural == "experiments") {
      std::cout << "\nmetrics\n";
      for (const auto& metric : find<ExperimentEntry>(params.name()).metrics)
        std::cout << fmt::format("  {:<34}{}\n", metric.name,
                                 wrapped(fmt::format("[{}] {}", metric.unit, metric.text), text_width(), 36, 36));
    }
    std::cout << "\n";
  }
  for (const auto& [metric, experiments] : all_metrics()) aliases.push_back(metric);
  if (!found)
    throw Misuse("describe: nothing is called '" + spec.name + "'" + nearest_names(spec.name, known, aliases));
  return 0;
}

const bool registered =
    add(CommandEntry{.text = {.name = "describe",
                              .summary = "parameters, claims, reference and cost of one entry, or what a metric is",
                              .formula = "describe NAME|SPEC|METRIC [--pattern]"},
                     .run = run,
                     .makes_methods = true,
                     .examples = {"describe performer:features=trig,m=64", "describe effective_rank",
                                  "describe --pattern bigbird:block=4"},
                     .names = {"methods", "features", "deterministic-features", "projections", "key-scores", "inputs",
                               "experiments", "recipes", "metrics"}});

}  // namespace
}  // namespace attnbench::describe_command
