#include "harness/cli/request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "harness/cli/command.hpp"
#include "harness/cli/config.hpp"
#include "harness/cli/option_error.hpp"
#include "harness/cli/specs.hpp"
#include "harness/cli/torch_options.hpp"
#include "harness/experiment/experiment.hpp"
#include "harness/machine/resources.hpp"

namespace attnbench {

namespace {

// Limit over all axes together: a file of 4 KB that swept 100,000 values in every line took 9 s and a gigabyte.
constexpr size_t most_axis_values = 300'000;

// Parses a count strictly: refuses "12x" and "-3".
Index count_of(const std::string& option, const std::string& text) {
  Index value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1)
    throw Misuse(fmt::format("--{} {}: expected an integer of at least 1", option, text));
  return value;
}

// Each word is a number, a list or a range, as after --sweep.
std::vector<Index> counts_of(const std::string& option, const std::vector<std::string>& words) {
  std::vector<Index> counts;
  for (const std::string& word : words) {
    if (word.find_first_of(",:") == std::string::npos)
      counts.push_back(count_of(option, word));
    else
      for (const std::string& value : parse_axis(option + "=" + word).values) counts.push_back(count_of(option, value));
    if (counts.size() > most_axis_values)
      throw Misuse(fmt::format("--{} {}: {} values with those before it; at most {} are read: use larger steps", option,
                               word, counts.size(), most_axis_values));
  }
  return counts;
}

double seconds_of(const std::string& option, const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value) || !(value > 0))
    throw Misuse(fmt::format("--{} {}: expected seconds, a number above 0", option, text));
  return value;
}

// The words as typed, before they are interpreted.
struct Words {
  std::string experiment;
  std::vector<std::string> method, methods, inputs, n, d, sweeps, zips;
  std::string dv, heads, precision, round, logit_scale, match, replicates, until, shard, timeout, memory, wait_quiet,
      threads, seed, results, config;
  bool causal = false, bidirectional = false, retry = false, all = false, audit = false;
  TorchOptions torch;
};

// in_file: only the options that a file may contain.
options::options_description options_of(Words& words, bool plan, bool in_file) {
  options::options_description known("options");
  const auto text = [](std::string& value, const char* name) { return options::value(&value)->value_name(name); };
  const auto list = [](std::vector<std::string>& values, const char* name) {
    return options::value(&values)->value_name(name);
  };
  const auto with_default = [](std::string& value, const char* name, const char* standard) {
    return options::value(&value)->value_name(name)->default_value(standard);
  };
  known.add_options()("experiment", options::value(&words.experiment), "what to measure: attnbench list experiments")(
      "method,m", list(words.method, "SPEC"), "a method, such as performer:m=64, or several with commas (repeatable)")(
      "methods", list(words.methods, "SPEC...")->multitoken(), "the same, also with spaces between them")(
      "input,i", list(words.inputs, "SPEC"),
      "an input, such as gaussian:scale=0.5, model:head=all or heads.npz (repeatable) [gaussian]")(
      "n,n", list(words.n, "VALUES"), "sequence lengths: 512,1024 or 512:4096:x2 [what the input has, or 1024]")(
      "d,d", list(words.d, "VALUES"), "key sizes [what the input has, or 64]")(
      "dv", text(words.dv, "N"), "value size [what the input has, or d]")("heads", with_default(words.heads, "N", "1"),
                                                                          "heads of a call (speed)")(
      "causal", options::bool_switch(&words.causal), "row i sees no later token [as the input is]")(
      "bidirectional", options::bool_switch(&words.bidirectional), "every row sees every token")(
      "precision", text(words.precision, "TYPE"),
      "f32, f64 or bf16: float whose products read both operands rounded to bfloat16 and stay float "
      "[f64; f32 for timing and for whole models]")(
      "round", with_default(words.round, "TYPE", "none"),
      "f16 or bf16: inputs and results of products and exponentials rounded to it, as if stored so, and kept in the "
      "precision")("logit-scale", text(words.logit_scale, "X"), "multiplies the logits [1]");
  add_torch_options(known, words.torch);
  known.add_options()("sweep", list(words.sweeps, "AXIS=VALUES"),
                      "m=16,32,64 or n=1024:65536:x2 or m=64:512:+64; a size or a parameter (repeatable)")(
      "zip", list(words.zips, "AXIS,AXIS"), "axes of --sweep that move together instead of multiplying (repeatable)")(
      "match", text(words.match, "COST=VALUE"),
      "flops=, bytes=, features=, keys=, kv-bytes= or seconds=VALUE: choose each method's budget for this cost of one "
      "call on one "
      "head")("replicates,r", text(words.replicates, "N"),
              "independent repetitions [1, or 16 texts for whole models]; with --until, at most [1000]")(
      "until", text(words.until, "PRECISION"),
      "rel-ci=X[,seconds=S]: add replicates until half of the 95 % interval of the experiment's first metric is at "
      "most X of it; timing: or for S seconds of turns a cell [60]")(
      "shard", with_default(words.shard, "i/k", "1/1"), "the i-th of k disjoint parts, for several machines")(
      "retry", options::bool_switch(&words.retry),
      "do again what failed, crashed, timed out or ran out of memory; it replaces the row")(
      "timeout", with_default(words.timeout, "SECONDS", "3600"), "that a replicate of a cell may take")(
      "memory", text(words.memory, "SIZE"),
      "such as 4GB, that a replicate of a cell may take [its share of the machine]")(
      "wait-quiet", options::value(&words.wait_quiet)->implicit_value("600")->value_name("SECONDS"),
      "timing: wait for other work on the machine to end, at most so long (600 if you give no number)")(
      "threads", text(words.threads, "N"), "[all cores of the allowed set]")("seed", with_default(words.seed, "N", "1"),
                                                                             "base seed")(
      "results", with_default(words.results, "FILE", "results/attnbench.db"), "results file");
  if (!in_file)
    known.add_options()("config", text(words.config, "FILE"),
                        "a file of these options: `option = value` lines, # comments; the command line beats it");
  if (!plan && !in_file)
    known.add_options()("audit", options::bool_switch(&words.audit),
                        "measure what is done again, each replicate in a new worker, and compare every number with "
                        "the stored one, bit for bit; it changes nothing. Exit code 1: some differ");
  if (plan) known.add_options()("all", options::bool_switch(&words.all), "print every cell, however many");
  return known;
}

void read_problem(const Words& words, const std::string& command, RunRequest& request) {
  request.n = counts_of("n", words.n);
  request.d = counts_of("d", words.d);
  if (!words.dv.empty()) request.dv = count_of("dv", words.dv);
  request.heads = count_of("heads", words.heads);
  if (words.causal && words.bidirectional)
    throw Misuse(command + ": --causal and --bidirectional exclude each other; keep one");
  if (words.causal) request.causal = true;
  if (words.bidirectional) request.causal = false;
  const auto& experiment = find<ExperimentEntry>(parse_spec(request.experiment).name);
  request.precision = experiment.usual_precision.value_or(experiment.timing() ? Precision::f32 : Precision::f64);
  if (!words.precision.empty()) {
    request.precision = parse_precision(words.precision);
  }
  request.rounding = parse_rounding(words.round);
  if (!words.logit_scale.empty()) request.logit_scale = axis_number<double>("logit_scale", words.logit_scale);
}

void read_axes(const Words& words, RunRequest& request) {
  size_t values = 0;
  for (const auto& text : words.sweeps) {
    request.sweep.push_back(parse_axis(text));
    values += request.sweep.back().values.size();
    if (values > most_axis_values)
      throw Misuse(fmt::format("--sweep {}: {} values with those before it; at most {} are read: use larger steps",
                               text, values, most_axis_values));
  }
  for (const auto& text : words.zips) request.zip.push_back(parse_zip(text));
  // Refuse a size given both as an option and as a sweep: one of them would be ignored silently.
  const auto refuse_twice = [&](const std::string& axis, const std::string& option, bool given) {
    for (const Axis& swept : request.sweep)
      if (given && swept.name == axis)
        throw Misuse(fmt::format("{} and --sweep {}=... both say {}; keep one", option, axis, axis));
  };
  refuse_twice("n", "-n", !words.n.empty());
  refuse_twice("d", "-d", !words.d.empty());
  refuse_twice("dv", "--dv", !words.dv.empty());
  refuse_twice("logit_scale", "--logit-scale", !words.logit_scale.empty());
}

// How many replicates run if the user does not say.
Index usual_replicates(const RunRequest& request) {
  const auto& experiment = find<ExperimentEntry>(parse_spec(request.experiment).name);
  Index replicates = experiment.usual_replicates;
  for (const std::string& input : request.inputs)
    if (const Index of_input = find<InputEntry>(parse_spec(input).name).usual_replicates;
        experiment.whole_model && of_input > 0)
      replicates = std::min(replicates, of_input);
  return replicates;
}

// Reads how many replicates run, and which part of them.
void read_extent(const Words& words, RunRequest& request) {
  if (!words.match.empty()) request.match = parse_match(words.match);
  if (!words.until.empty()) request.until = parse_until(words.until);
  request.replicates = !words.replicates.empty() ? count_of("replicates", words.replicates)
                       : request.until           ? until_replicates
                                                 : usual_replicates(request);
  if (request.until && request.until->seconds && !request.timing())
    throw Misuse(
        fmt::format("--until {}: {} measures no time, and a cap in seconds would make its rows depend on the "
                    "clock; cap it with --replicates",
                    words.until, parse_spec(words.experiment).name));
  request.shard = parse_shard(words.shard);
  if (request.shard.count > 1 && request.match && request.match->cost == Match::Cost::seconds)
    throw Misuse(
        fmt::format("--match {} with --shard {}: each machine would measure budgets of its own, and the shards "
                    "would be of different runs; match flops, bytes, features, keys or kv-bytes",
                    words.match, words.shard));
  request.retry = words.retry;
  request.threads = words.threads.empty() ? allowed_cores()
                                          : static_cast<int>(std::min<Index>(1024, count_of("threads", words.threads)));
  const auto [end, error] = std::from_chars(words.seed.data(), words.seed.data() + words.seed.size(), request.seed);
  if (error != std::errc() || end != words.seed.data() + words.seed.size())
    throw Misuse("--seed " + words.seed + ": expected an integer from 0 to 2^64 - 1");
}

// The limit of one worker. A number without its unit is the usual mistake, and every cell would fail with it.
double parse_worker_memory(const std::string& text) {
  const double bytes = parse_memory_size("memory", text);
  if (bytes < 1e6)
    throw Misuse(fmt::format(
        "--memory {}: that is {:.6g} bytes, and a worker alone takes more than a megabyte{}", text, bytes,
        text.find_first_not_of("0123456789.") == text.npos ? fmt::format("; did you mean {}GB?", text) : ""));
  return bytes;
}

RunArguments meaning_of(const Words& words, const std::string& command) {
  if (words.experiment.empty()) throw Misuse(command + ": no experiment given; see attnbench list experiments");
  std::vector<std::string> methods = method_specs("--method", words.method);
  for (std::string& spec : method_specs("--methods", words.methods)) methods.push_back(std::move(spec));
  if (methods.empty()) throw Misuse(command + ": no --method given; see attnbench list methods");
  methods = with_torch_options(methods, words.torch);
  std::vector<std::string> inputs;
  for (const std::string& word : words.inputs) inputs.push_back(input_spec(word));
  if (inputs.empty()) inputs = {"gaussian"};
  RunArguments arguments{{.experiment = words.experiment, .methods = std::move(methods), .inputs = std::move(inputs)},
                         {},
                         words.results,
                         words.all,
                         words.audit};
  read_problem(words, command, arguments.request);
  read_axes(words, arguments.request);
  read_extent(words, arguments.request);
  if (words.audit && words.retry) throw Misuse("run: --audit measures what is done, and --retry what failed; keep one");
  arguments.limits.seconds = seconds_of("timeout", words.timeout);
  if (!words.memory.empty()) arguments.limits.bytes = parse_worker_memory(words.memory);
  if (!words.wait_quiet.empty()) arguments.limits.wait_quiet = seconds_of("wait-quiet", words.wait_quiet);
  return arguments;
}

// Drops the options of a file that the command line replaces. --causal also replaces bidirectional, and vice versa.
void drop_replaced(const options::variables_map& given, options::parsed_options& file) {
  const auto has = [&](const std::string& name) { return given.contains(name) && !given[name].defaulted(); };
  const auto replaced = [&](const std::string& name) {
    if (name == "causal" || name == "bidirectional") return has("causal") || has("bidirectional");
    if (name == "method" || name == "methods") return has("method") || has("methods");
    return has(name);
  };
  std::erase_if(file.options, [&](const auto& option) { return replaced(option.string_key); });
}

std::ifstream open_config(const std::string& path) {
  std::error_code error;
  std::ifstream file(path);
  if (std::filesystem::is_directory(path, error) || !file)
    throw Misuse(fmt::format("--config {}: {}; expected a file of options", path,
                             std::filesystem::is_directory(path, error) ? "is a folder"
                             : std::filesystem::exists(path, error)     ? "cannot be read"
                                                                        : "there is no such file"));
  return file;
}

}  // namespace

std::optional<RunArguments> parse_request(const std::string& command, const std::vector<std::string>& words) {
  Words given;
  const bool plan = command == "plan";
  const auto read_file = [&](options::variables_map& values) {
    if (!values.contains("config")) return;
    const std::string path = values["config"].as<std::string>();
    std::ifstream file = open_config(path);
    const auto known = options_of(given, plan, true);
    auto parsed = parse_config(file, path, known);
    drop_replaced(values, parsed);
    options::store(parsed, values);
  };
  if (!parse_arguments(command, options_of(given, plan, false), words, {{"experiment", 1}}, read_file))
    return std::nullopt;
  RunArguments arguments = meaning_of(given, command);
  for (const std::string& method : arguments.request.methods) require_text(method);
  arguments.request.inputs = with_all_heads(arguments.request.inputs);
  return arguments;
}

RunArguments parse_request_config(std::istream& text, const std::string& name) {
  Words words;
  const auto known = options_of(words, false, true);
  options::variables_map values;
  try {
    options::store(parse_config(text, name, known), values);
    options::notify(values);
  } catch (options::error& error) {
    throw Misuse(fmt::format("{}: {}", name, message_of(error)));
  }
  return meaning_of(words, name);
}

RunRequest parse_recipe_run(const std::vector<NamedOption>& given) {
  static const std::vector<std::string> known{
      "experiment", "method", "input",       "n",     "d",   "dv",    "heads",      "causal", "bidirectional",
      "precision",  "round",  "logit-scale", "sweep", "zip", "match", "replicates", "seed"};
  Words words;
  const auto options_known = options_of(words, false, true);
  options::parsed_options parsed(&options_known);
  for (const auto& [name, value] : given) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw Misuse(fmt::format("a run of a recipe has no option '{}'{}", name, nearest_names(name, known)));
    parsed.options.emplace_back(name, std::vector<std::string>{value});
  }
  options::variables_map values;
  try {
    options::store(parsed, values);
    options::notify(values);
  } catch (options::error& error) {
    throw Misuse(message_of(error));
  }
  RunRequest request = meaning_of(words, "a run of a recipe").request;
  request.threads = 1;  // times of recipes are of one thread on every machine
  if (request.match && request.match->cost == Match::Cost::seconds)
    throw Misuse("match = \"" + words.match +
                 "\": every machine would measure budgets of its own; match flops, bytes, features, keys or "
                 "kv-bytes");
  return request;
}

std::vector<OptionGroup> request_groups() {
  return {{"what is measured", {"method", "methods", "input", "sweep", "zip", "match"}},
          {"the problem",
           {"n", "d", "dv", "heads", "causal", "bidirectional", "precision", "round", "logit-scale", "seed"}},
          {"methods in PyTorch", {"device", "dtype", "compile"}},
          {"how often and how long",
           {"replicates", "until", "retry", "timeout", "memory", "threads", "wait-quiet", "shard"}},
          {"results and options", {"results", "audit", "all", "config", "help"}}};
}

double parse_memory_size(const std::string& option, const std::string& text) {
  static constexpr std::pair<const char*, double> units[] = {
      {"", 1},      {"B", 1},        {"kB", 1e3},     {"MB", 1e6},     {"GB", 1e9},
      {"TB", 1e12}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string unit(end, text.data() + text.size());
  const auto* known =
      std::find_if(std::begin(units), std::end(units), [&](const auto& one) { return unit == one.first; });
  if (error != std::errc() || known == std::end(units) || !std::isfinite(value) || !(value * known->second >= 1))
    throw Misuse(fmt::format("--{} {}: expected a size such as 4GB, 512MB or 2GiB", option, text));
  return value * known->second;
}

}  // namespace attnbench
