// attnbench recommend: recommends a method and budget for the user's own heads, or exact softmax.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <iostream>

#include "experiments/commands/measured_candidates.hpp"
#include "experiments/commands/recommend_model.hpp"
#include "harness/cli/command.hpp"
#include "harness/cli/request.hpp"
#include "harness/cli/specs.hpp"
#include "harness/cli/terminal.hpp"
#include "harness/machine/memory_limit.hpp"
#include "harness/store/store.hpp"
#include "harness/timing/turns.hpp"

namespace attnbench::recommend_command {
namespace {

double limit_of(const std::string& option, const std::string& text, const std::string& meaning) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value) || !(value > 0))
    throw Misuse(fmt::format("--{} {}: expected a number above 0, {}", option, text, meaning));
  return value;
}

double limit_of_error(const std::string& text) {
  return limit_of(
      "max-error", text,
      "the norm of the output's error over that of the output (0.01 is one percent; an error of 0 has exact "
      "softmax alone)");
}

ModelNeeds model_needs(const std::string& most_loss, const std::string& saved) {
  if (saved != "time" && saved != "memory") throw Misuse("--save " + saved + ": expected time or memory");
  return {.loss = limit_of("max-loss", most_loss,
                           "bits per byte above exact softmax (a loss of 0 has exact softmax alone)"),
          .saved = saved == "time" ? Saved::time : Saved::memory};
}

// With --model some options have no meaning, and without it others.
void refuse_options_of_the_other(const options::variables_map& given, bool model) {
  const auto refuse = [&](const std::string& option, const std::string& instead) {
    if (given.contains(option) && !given[option].defaulted())
      throw Misuse(
          fmt::format("recommend: --{} {} --model; {}", option, model ? "does not go with" : "needs", instead));
  };
  for (const char* option : {"max-error", "max-memory"})
    if (model) refuse(option, "give --max-loss BITS and --save time or --save memory");
  for (const char* option : {"causal", "bidirectional"})
    if (model) refuse(option, "the model says which tokens a row sees: leave it out");
  for (const char* option : {"max-loss", "save"})
    if (!model) refuse(option, "for single heads give --max-error and --max-memory");
}

Index length_of(const std::string& text) {
  Index value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1)
    throw Misuse(fmt::format("-n {}: expected an integer of at least 1", text));
  return value;
}

// A number without its unit is the usual mistake, and no method would meet the limit.
double most_bytes(const std::string& text) {
  const double bytes = parse_memory_size("max-memory", text);
  if (bytes < 1e6 && text.find_first_not_of("0123456789.") == text.npos)
    throw Misuse(fmt::format("--max-memory {0}: that is {0} bytes; did you mean {0}MB? ({0}B says bytes)", text));
  return bytes;
}

const char* word(Fit fit) { return fit == Fit::meets ? "meets limits" : fit == Fit::misses ? "misses" : "UNDECIDED"; }

void print_row(const Candidate& c, const Needs& needs) {
  std::cout << fmt::format("{:<34}  {:<32}{:<30}{:>9}{:>10}  {}\n", c.method, c.error.text(),
                           c.seconds > 0 ? c.time.text() : "not timed",
                           c.seconds > 0 ? fmt::format("{:.3g} ms", 1000 * c.seconds) : "",
                           c.bytes ? memory_size(*c.bytes) : "", word(fit_of(c, needs)));
}

void print(const MeasuredCandidates& found, const Recommendation& answer, const Needs& needs, size_t candidates) {
  constexpr size_t most_missing = 10;
  std::cout << answer.sentence << "\n\n";
  std::cout << fmt::format("{:<34}  {:<32}{:<30}{:>9}{:>10}  {}\n", "method", "error of the output", "time / softmax's",
                           "a call", "memory", "verdict");
  for (const Candidate& c : answer.ranked) print_row(c, needs);
  for (size_t i = 0; i < std::min(most_missing, found.untimed.size()); ++i) print_row(found.untimed[i], needs);
  if (found.untimed.size() > most_missing)
    std::cout << fmt::format("and {} that err more\n", found.untimed.size() - most_missing);
  std::cout << fmt::format("\n{} candidates: {} timed, {} err too much", candidates, found.timed.size(),
                           found.dropped + found.untimed.size());
  if (!found.least_dropped.empty())
    std::cout << fmt::format(" ({} of them clearly; of these {} errs least)", found.dropped, found.least_dropped);
  std::cout << fmt::format(", {} cost more than one that meets the limit", found.dominated);
  if (found.unmeasured > 0)
    std::cout << fmt::format(", {} could not be measured; the first: {}", found.unmeasured, found.first_reason);
  std::cout << fmt::format(
      "\nintervals: {} for all errors and times together; errors in double, on the head where they are greatest; times "
      "in "
      "float, of the first head on one thread\n",
      1 - recommendation_error_rate);
  // Errors are those of double, and users call the method in float.
  for (const Candidate& c : answer.ranked)
    if (const std::string warning = rounding_warning(c.method, c.rounding); !warning.empty())
      std::cout << "warning: " << warning << "\n";
  if (!found.fitted.empty())
    std::cout << fmt::format("an input has no other head to learn from: {} learnt from the measured one\n",
                             fmt::join(found.fitted, ", "));
}

int recommend_command(const std::vector<std::string>& words) {
  std::string most_error, most_memory, most_loss, saved, n, results;
  std::vector<std::string> inputs, method, methods;
  bool model = false, causal = false, bidirectional = false;
  options::options_description visible("options");
  visible.add_options()(
      "input,i", options::value(&inputs)->value_name("SPEC"),
      "heads: heads.npz,head=0, model:head=all, a law; of several (repeatable) the one where a method errs most counts "
      "[gaussian]")("max-error", options::value(&most_error)->value_name("E")->default_value("0.05"),
                    "norm of the output's error over that of exact softmax's output, at most")(
      "max-memory", options::value(&most_memory)->value_name("SIZE"),
      "of a call beyond inputs and output, at most: 64MiB")("n,n", options::value(&n)->value_name("N"),
                                                            "sequence length [what the input has, or 1024]")(
      "causal", options::bool_switch(&causal), "row i sees no later token [as the input is]")(
      "bidirectional", options::bool_switch(&bidirectional), "every row sees every token")(
      "method,m", options::value(&method)->value_name("SPEC"),
      "only this method, or several with commas; a budget that is left open is searched (repeatable) [all]")(
      "methods", options::value(&methods)->value_name("SPEC...")->multitoken(),
      "the same, also with spaces between them")(
      "model", options::bool_switch(&model),
      "a method for each head of a whole model, by the bits per byte that it loses; the input is a model [model]")(
      "max-loss", options::value(&most_loss)->value_name("BITS")->default_value("0.05"),
      "with --model: bits per byte above exact softmax, at most")(
      "save", options::value(&saved)->value_name("COST")->default_value("time"),
      "with --model: time or memory of the calls, which is to be least")(
      "results", options::value(&results)->value_name("FILE")->default_value("results/attnbench.db"), "results file");
  const auto given = parse_arguments("recommend", visible, words, {});
  if (!given) return 0;
  refuse_options_of_the_other(*given, model);
  if (causal && bidirectional) throw Misuse("recommend: --causal and --bidirectional exclude each other; keep one");
  Needs needs{.error = limit_of_error(most_error)};
  if (!most_memory.empty()) needs.bytes = most_bytes(most_memory);
  if (inputs.empty()) inputs = {model ? "model" : "gaussian"};
  for (std::string& input : inputs) input = input_spec(input);
  if (model && inputs.size() > 1)
    throw Misuse(fmt::format("recommend: --model takes one input and {} were given; keep one", inputs.size()));
  inputs = with_all_heads(inputs);
  if (model) inputs.resize(1);  // model-loss refuses one that names a head
  for (const std::string& input : model ? std::vector<std::string>() : inputs)
    if (const std::string remark = remark_on_heads(input); !remark.empty()) print_message("note: " + remark);
  RunRequest heads{.experiment = "", .methods = {}, .inputs = inputs};
  if (!n.empty()) heads.n = {length_of(n)};
  if (causal || bidirectional) heads.causal = causal;
  if (model) {
    heads.experiment = "model-loss";
    heads.methods = {"softmax"};
    heads.precision = Precision::f32;
    expand(heads);  // refuses an input without a model
    refuse_few_texts(heads);
  }
  const Shape shape = shape_of(heads);
  std::vector<std::string> specs = method_specs("--method", method);
  for (std::string& spec : method_specs("--methods", methods)) specs.push_back(std::move(spec));
  const SearchSpace space = search_space(specs, shape);
  if (space.candidates.empty())
    throw Misuse(
        fmt::format("recommend: no candidate is left; expected methods beside softmax with a form for this "
                    "head{}",
                    space.without_form.empty() ? "" : fmt::format(" ({})", fmt::join(space.without_form, "; "))));
  const ModelNeeds of_model = model_needs(most_loss, saved);
  Store store(results);
  const auto run_id = begin_run(store);
  if (model) return recommend_for_model(heads, space, of_model, store, run_id);
  const auto found = measure_candidates(heads, space.candidates, needs, store, run_id);
  if (!found) {
    std::cout << "interrupted; the same command goes on\n";
    return 130;
  }
  const Recommendation answer = recommend(found->timed, found->exact, needs);
  print(*found, answer, needs, space.candidates.size());
  return answer.best ? 0 : 1;
}

const bool registered = add(CommandEntry{
    .text = {.name = "recommend",
             .summary = "which method and budget answers best for a head, by measured error, time and memory, or "
                        "exact softmax; exit code 1 when nothing meets the limits",
             .formula = "recommend --input SPEC [--max-error E] [--max-memory SIZE] [-n N] [--methods SPEC...], or "
                        "recommend --model [--max-loss BITS] [--save time|memory]"},
    .run = recommend_command,
    .examples = {"recommend --input heads.npz --max-error 0.05",
                 "recommend --input model:head=all --methods performer local",
                 "recommend --model --max-loss 0.02 --methods local top-k"}});

}  // namespace
}  // namespace attnbench::recommend_command
