// attnbench attend: applies one method to the heads of a file.
#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "harness/cli/command.hpp"
#include "harness/cli/specs.hpp"
#include "harness/cli/terminal.hpp"
#include "harness/core/scaling.hpp"
#include "harness/inputs/input.hpp"
#include "harness/inputs/tensor_file.hpp"
#include "harness/inputs/write_safetensors.hpp"
#include "harness/linalg/rounding.hpp"
#include "harness/machine/resources.hpp"
#include "harness/measures/attend_heads.hpp"

namespace attnbench::attend_command {
namespace {

struct Arguments {
  std::string spec, input, output, state, write_state, calibrate;
  bool causal = false, matrix = false, kernel = false;
  Precision precision = Precision::f32;
  Rounding rounding = Rounding::none;
  std::uint64_t seed = 1;
};

// One set of tensors for all heads, or one for each if the file's tensors have an axis of heads: [heads, rows,
// columns].
std::vector<Tensors> read_state(const std::string& path) {
  std::vector<Tensors> states(1);
  for (const auto& [name, tensor] : read_tensors(path)) {
    if (tensor.shape.size() != 3) {
      for (Tensors& state : states) state[name] = as_matrix(tensor, name);
      continue;
    }
    const auto heads = static_cast<size_t>(tensor.shape[0]);
    if (states.size() == 1) states.resize(heads, states[0]);
    if (states.size() != heads)
      throw Misuse(fmt::format("{}: '{}' is of {} heads and another tensor of {}", path, name, heads, states.size()));
    const Index rows = tensor.shape[1], columns = tensor.shape[2];
    for (size_t h = 0; h < heads; ++h)
      states[h][name] = Eigen::Map<const Matrix<double>>(tensor.values.data() + static_cast<Index>(h) * rows * columns,
                                                         rows, columns);
  }
  return states;
}

// Writes a file that read_state reads. The tensors of a single head have no axis of heads.
void write_state(const std::string& path, const Params& params, const std::vector<Tensors>& states) {
  NamedTensors written;
  for (const auto& [name, first] : states[0]) {
    Tensor tensor{{first.rows(), first.cols()}, {}};
    if (states.size() > 1) tensor.shape.insert(tensor.shape.begin(), std::ssize(states));
    for (size_t h = 0; h < states.size(); ++h) {
      const Matrix<double>& matrix = states[h].at(name);
      if (matrix.rows() != first.rows() || matrix.cols() != first.cols())
        throw Misuse(
            fmt::format("--write-state: '{}' of {} has {} rows for head 0 and {} for head {}; give a file of one head",
                        name, params.spec(), first.rows(), matrix.rows(), h));
      tensor.values.insert(tensor.values.end(), matrix.data(), matrix.data() + matrix.size());
    }
    written[name] = std::move(tensor);
  }
  if (written.empty())
    throw Misuse(fmt::format("--write-state: the state of {} is empty: it draws and learns nothing", params.spec()));
  write_safetensors(path, written, Precision::f64);
}

// A tensor whose last two axes are the matrix of each head.
template <class T>
Tensor tensor_of(const std::vector<Index>& leading, Index rows, Index columns, const std::vector<T>& numbers) {
  std::vector<Index> shape = leading;
  shape.insert(shape.end(), {rows, columns});
  return {std::move(shape), {numbers.begin(), numbers.end()}};
}

// The heads of a file, of a model or of a law, in double and scaled.
struct Heads {
  std::vector<Index> leading = {};              // axes of the results before those of a head
  Index batches = 1, heads = 1, key_heads = 0;  // 0: as many as heads
  Index nq = 0, nk = 0, d = 0, dv = 0;
  std::function<HeadData<double>(Index batch, Index head)> scaled;
  std::string giver = {};
  std::function<std::string(const Need&)> advice = inputs_that_give;
};

// A remark if the axes of heads and tokens seem exchanged; else empty. One query of many heads is what decoding gives.
std::string remark_on_axes(const AttentionFile& file) {
  if (file.heads <= file.nq || file.key_heads <= file.nk) return "";
  return fmt::format(
      "warning: q has shape [{0}{1}, {2}, {3}], which is {1} heads of {2} tokens, and k has {4} heads of "
      "{5}; "
      "if they are [tokens, heads, d], exchange these axes, as np.swapaxes(q, -3, -2) does",
      file.leading.size() == 2 ? fmt::format("{}, ", file.batches) : "", file.heads, file.nq, file.d, file.key_heads,
      file.nk);
}

Heads heads_of_file(const std::string& path, const std::vector<Need>& needs) {
  const auto file = std::make_shared<const AttentionFile>(read_attention_file(path, needs));
  if (const std::string remark = remark_on_axes(*file); !remark.empty()) print_message(remark);
  const double scale = edge_scale(file->d);
  return {.leading = file->leading,
          .batches = file->batches,
          .heads = file->heads,
          .key_heads = file->key_heads,
          .nq = file->nq,
          .nk = file->nk,
          .d = file->d,
          .dv = file->dv,
          .scaled =
              [=](Index b, Index h) {
                HeadData<double> head = scaled_head<double>(file->head(b, h), scale);
                head.extra = file->extras(b, h);
                return head;
              },
          .giver = path,
          .advice =
              [](const Need& need) {
                return fmt::format("put an array '{}' of shape [{}, {}] beside q, k and v, or one for each head",
                                   need.name, need.rows, need.columns);
              }};
}

// The heads that `attnbench run` would measure in the first replicate, or those that it would learn from.
Heads heads_of_inputs(const std::vector<std::string>& specs, std::uint64_t seed, Purpose purpose,
                      const std::vector<Need>& needs) {
  std::vector<Params> inputs;
  for (const std::string& spec : specs) inputs.emplace_back("inputs", spec);
  const InputLimits limits = find<InputEntry>(inputs.front().name()).limits(inputs.front());
  const auto size = [](Index fixed, Index otherwise) { return fixed > 0 ? fixed : otherwise; };
  Heads all{.heads = std::ssize(inputs),
            .nq = size(limits.queries, 1024),
            .nk = size(limits.keys, 1024),
            .d = size(limits.d, 64),
            .dv = size(limits.dv, size(limits.d, 64)),
            .scaled = {},
            .giver = "the input " + inputs.front().spec()};
  if (all.heads > 1) all.leading = {all.heads};
  all.scaled = [=, nq = all.nq, nk = all.nk, d = all.d, dv = all.dv](Index, Index h) {
    return draw_head(
        inputs[static_cast<size_t>(h)],
        {.nq = nq, .nk = nk, .d = d, .dv = dv, .streams = Streams(seed), .purpose = purpose, .needs = needs});
  };
  return all;
}

// A file without an argument stands for all its heads, so that the results have the axes of its arrays.
Heads heads_of(const std::string& word, std::uint64_t seed, Purpose purpose, const std::vector<Need>& needs) {
  const std::string spec = input_spec(word);
  const bool path = word.find_first_of("./") != std::string::npos || std::filesystem::exists(word);
  if (path && spec.find(':') == std::string::npos) return heads_of_file(word, needs);
  const Params first("inputs", with_all_heads({spec}).front());
  const auto& arguments = parse_spec(spec).arguments;
  if (first.name() == "file" && arguments.size() == 1) return heads_of_file(first.text("path"), needs);
  return heads_of_inputs(with_all_heads({spec}), seed, purpose, needs);
}

// Whether the input has other heads for fitted methods to learn from.
bool keeps_calibration(const std::string& word) {
  const std::string name = input_spec(word).substr(0, input_spec(word).find(':'));
  return catalogue("inputs").has(name) && has_calibration(Params("inputs", input_spec(word)));
}

template <class T>
NamedTensors attend(const Arguments& arguments, const Params& params, const Heads& heads, const Heads& calibration,
                    const std::vector<Tensors>& states) {
  const GivenHeads<T> given{
      .batches = heads.batches,
      .heads = heads.heads,
      .key_heads = heads.key_heads,
      .nq = heads.nq,
      .nk = heads.nk,
      .d = heads.d,
      .dv = heads.dv,
      .measured = [&](Index b, Index h) { return heads.scaled(b, h).template cast<T>(); },
      .calibration = [&](Index b, Index h) { return calibration.scaled(std::min(b, calibration.batches - 1), h); }};
  const auto numbers = [&](bool wanted, Index rows, Index columns) {
    return std::vector<T>(wanted ? static_cast<size_t>(heads.batches * heads.heads * rows * columns) : 0);
  };
  std::vector<T> out = numbers(true, heads.nq, heads.dv), attention = numbers(arguments.matrix, heads.nq, heads.nk),
                 kernel = numbers(arguments.kernel, heads.nq, heads.nk),
                 log_rows = numbers(arguments.kernel, heads.nq, 1),
                 log_columns = numbers(arguments.kernel, heads.nk, 1);
  Context context(allowed_cores(), arguments.rounding, operands_of(arguments.precision));
  std::vector<Tensors> drawn;
  attend_heads<T>({.method = params,
                   .causal = arguments.causal,
                   .seed = arguments.seed,
                   .states = states,
                   .giver = heads.giver,
                   .advice = heads.advice},
                  given, context,
                  {out, attention, kernel, log_rows, log_columns, arguments.write_state.empty() ? nullptr : &drawn});
  if (!arguments.write_state.empty()) write_state(arguments.write_state, params, drawn);
  NamedTensors result{{"out", tensor_of(heads.leading, heads.nq, heads.dv, out)}};
  if (arguments.matrix) result["attention"] = tensor_of(heads.leading, heads.nq, heads.nk, attention);
  if (arguments.kernel) {
    result["kernel"] = tensor_of(heads.leading, heads.nq, heads.nk, kernel);
    result["kernel_log_rows"] = tensor_of(heads.leading, heads.nq, 1, log_rows);
    result["kernel_log_columns"] = tensor_of(heads.leading, heads.nk, 1, log_columns);
  }
  return result;
}

// A file to write that is another of the command's files would replace it.
void refuse_one_file_for_two(const Arguments& arguments) {
  const auto file_of = [](const std::string& word) {  // heads.npz, file:heads.npz and file:path=heads.npz,head=3
    const std::string spec = word.empty() ? word : input_spec(word);
    if (!spec.starts_with("file:")) return word;
    for (const auto& [key, value] : parse_spec(spec).arguments)
      if (key.empty() || key == "path") return value;
    return word;
  };
  const std::array<std::pair<const char*, std::string>, 5> files{{{"--input", file_of(arguments.input)},
                                                                  {"--state", arguments.state},
                                                                  {"--calibrate", file_of(arguments.calibrate)},
                                                                  {"--output", arguments.output},
                                                                  {"--write-state", arguments.write_state}}};
  std::error_code absent;
  for (const size_t written : {size_t{3}, size_t{4}})
    for (size_t other = 0; other < written; ++other) {
      const auto& [option, file] = files[written];
      if (file.empty() || files[other].second.empty()) continue;
      if (std::filesystem::weakly_canonical(file, absent) ==
          std::filesystem::weakly_canonical(files[other].second, absent))
        throw Misuse(fmt::format("{} {}: {} names this file as well; give another name to write", option, file,
                                 files[other].first));
    }
}

int run(const std::vector<std::string>& words) {
  Arguments arguments;
  std::string precision, round;
  options::options_description visible("options");
  visible.add_options()("spec", options::value(&arguments.spec), "method spec")(
      "input", options::value(&arguments.input)->value_name("FILE|SPEC"),
      ".safetensors or .npz with q, k, v: [n, d], [heads, n, d] or [batch, heads, n, d]; or an input as run takes it: "
      "file:heads.npz,head=3, model:head=all, gaussian. Tensors that the method needs beside them (describe SPEC) are "
      "in the file by name: [rows, columns] for all heads, or with the axes of q")(
      "output", options::value(&arguments.output)->value_name("FILE"),
      ".safetensors to write: out, and attention and kernel when asked")(
      "causal", options::bool_switch(&arguments.causal), "row i sees no later token")(
      "matrix", options::bool_switch(&arguments.matrix), "also write the attention matrix")(
      "kernel", options::bool_switch(&arguments.kernel),
      "also write the unnormalised kernel and its log stabilisers: a library that leaves its stabilisers in has "
      "kernel_ij exp(-kernel_log_rows_i - kernel_log_columns_j)")(
      "precision", options::value(&precision)->value_name("TYPE")->default_value("f32"),
      "f32, f64 or bf16: float whose products read both operands rounded to bfloat16 and stay float")(
      "round", options::value(&round)->value_name("TYPE")->default_value("none"),
      "f16 or bf16: inputs and results of products and exponentials rounded to it, as if stored so, and kept in the "
      "precision")(
      "state", options::value(&arguments.state)->value_name("FILE"),
      "tensors to use instead of drawing or learning, [rows, columns] for all heads or [heads, rows, columns]; "
      "`describe SPEC` lists their names")(
      "write-state", options::value(&arguments.write_state)->value_name("FILE"),
      ".safetensors to write: what was drawn and learnt for the heads of the first batch, as --state reads it")(
      "calibrate", options::value(&arguments.calibrate)->value_name("FILE|SPEC"),
      "what fitted methods learn from [the input; for a law or model, heads of its own that it keeps for this]")(
      "seed", options::value(&arguments.seed)->value_name("N")->default_value(1), "base seed");
  if (!parse_arguments("attend", visible, words, {{"spec", 1}})) return 0;
  for (const auto& [value, name] :
       {std::pair(arguments.spec, "a method spec"), std::pair(arguments.input, "--input FILE or --input SPEC"),
        std::pair(arguments.output, "--output FILE")})
    if (value.empty()) throw Misuse(fmt::format("attend: {} is missing; see attnbench attend --help", name));
  arguments.precision = parse_precision(precision);
  if (!arguments.output.ends_with(".safetensors"))
    throw Misuse("--output " + arguments.output + ": expected a name that ends in .safetensors");

  refuse_one_file_for_two(arguments);
  arguments.rounding = parse_rounding(round);
  const Params params("methods", arguments.spec);
  const std::vector<Need> needs = needs_of(params);
  const Heads heads = heads_of(arguments.input, arguments.seed, Purpose::measured, needs);
  refuse_absurd_sizes(heads.nq, heads.nk, heads.d, heads.dv);
  const bool learns = find<MethodEntry>(params.name()).fitted(params) && arguments.state.empty();
  const bool own = learns && arguments.calibrate.empty() && keeps_calibration(arguments.input);
  if (learns && arguments.calibrate.empty() && !own)
    print_message(params.name() + " learns from the input itself (in sample); --calibrate FILE names another");
  for (const auto& caveat :
       find<MethodEntry>(params.name()).caveats(params, {.nq = heads.nq, .nk = heads.nk, .d = heads.d, .dv = heads.dv}))
    print_message("note: " + caveat);
  std::optional<Heads> other;
  if (!arguments.calibrate.empty()) other = heads_of(arguments.calibrate, arguments.seed, Purpose::calibration, needs);
  if (own) other = heads_of(arguments.input, arguments.seed, Purpose::calibration, needs);
  const Heads& calibration = other ? *other : heads;
  if (calibration.heads != heads.heads || calibration.d != heads.d)
    throw Misuse(fmt::format("--calibrate {}: {} heads with d = {}; expected {} heads with d = {} as in the input",
                             arguments.calibrate, calibration.heads, calibration.d, heads.heads, heads.d));
  if (!arguments.write_state.empty() && !arguments.write_state.ends_with(".safetensors"))
    throw Misuse("--write-state " + arguments.write_state + ": expected a name that ends in .safetensors");
  std::vector<Tensors> states;
  if (!arguments.state.empty()) states = read_state(arguments.state);
  try {
    const auto result = in_float(arguments.precision) ? attend<float>(arguments, params, heads, calibration, states)
                                                      : attend<double>(arguments, params, heads, calibration, states);
    write_safetensors(arguments.output, result, in_float(arguments.precision) ? Precision::f32 : Precision::f64);
  } catch (const Skip& e) {
    throw Misuse(e.what());
  }
  return 0;
}

const bool registered =
    add(CommandEntry{.text = {.name = "attend",
                              .summary = "one method on the heads of a file or of another input",
                              .formula = "attend SPEC --input FILE|SPEC --output FILE [OPTIONS]"},
                     .run = run,
                     .makes_methods = true,
                     .examples = {"attend performer:m=256 --input heads.npz --output out.safetensors --matrix",
                                  "attend nystrom --input model:layer=2,head=all --output out.safetensors"},
                     .names = {"methods"}});

}  // namespace
}  // namespace attnbench::attend_command
