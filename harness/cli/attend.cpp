// attnbench attend: applies one method to the heads of a file.
#include <fmt/format.h>

#include <iostream>

#include "harness/cli/command.hpp"
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
  std::string spec, input, output, precision, state, write_state, calibrate;
  bool causal = false, matrix = false, kernel = false;
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

template <class T>
NamedTensors attend(const Arguments& arguments, const Params& params, const AttentionFile& file,
                    const AttentionFile& calibration, const std::vector<Tensors>& states) {
  const double scale = edge_scale(file.d);
  const GivenHeads<T> given{.batches = file.batches,
                            .heads = file.heads,
                            .nq = file.nq,
                            .nk = file.nk,
                            .d = file.d,
                            .dv = file.dv,
                            .measured = [&](Index b, Index h) { return scaled_head<T>(file.head(b, h), scale); },
                            .calibration =
                                [&](Index b, Index h) {
                                  return scaled_head<double>(calibration.head(std::min(b, calibration.batches - 1), h),
                                                             scale);
                                }};
  const auto numbers = [&](bool wanted, Index rows, Index columns) {
    return std::vector<T>(wanted ? static_cast<size_t>(file.batches * file.heads * rows * columns) : 0);
  };
  std::vector<T> out = numbers(true, file.nq, file.dv), attention = numbers(arguments.matrix, file.nq, file.nk),
                 kernel = numbers(arguments.kernel, file.nq, file.nk), log_rows = numbers(arguments.kernel, file.nq, 1),
                 log_columns = numbers(arguments.kernel, file.nk, 1);
  Context context(allowed_cores(), arguments.rounding);
  std::vector<Tensors> drawn;
  attend_heads<T>({.method = params, .causal = arguments.causal, .seed = arguments.seed, .states = states}, given,
                  context,
                  {out, attention, kernel, log_rows, log_columns, arguments.write_state.empty() ? nullptr : &drawn});
  if (!arguments.write_state.empty()) write_state(arguments.write_state, params, drawn);
  NamedTensors result{{"out", tensor_of(file.leading, file.nq, file.dv, out)}};
  if (arguments.matrix) result["attention"] = tensor_of(file.leading, file.nq, file.nk, attention);
  if (arguments.kernel) {
    result["kernel"] = tensor_of(file.leading, file.nq, file.nk, kernel);
    result["kernel_log_rows"] = tensor_of(file.leading, file.nq, 1, log_rows);
    result["kernel_log_columns"] = tensor_of(file.leading, file.nk, 1, log_columns);
  }
  return result;
}

// A remark if the axes of heads and tokens seem exchanged; else empty. One query of many heads is what decoding gives.
std::string remark_on_axes(const AttentionFile& file) {
  if (file.heads <= file.nq || file.key_heads <= file.nk) return "";
  return fmt::format(
      "attnbench: warning: q has shape [{0}{1}, {2}, {3}], which is {1} heads of {2} tokens, and k has {4} heads of "
      "{5}; "
      "if they are [tokens, heads, d], exchange these axes, as np.swapaxes(q, -3, -2) does\n",
      file.leading.size() == 2 ? fmt::format("{}, ", file.batches) : "", file.heads, file.nq, file.d, file.key_heads,
      file.nk);
}

int run(const std::vector<std::string>& words) {
  Arguments arguments;
  std::string round;
  options::options_description visible("options");
  visible.add_options()("spec", options::value(&arguments.spec), "method spec")(
      "input", options::value(&arguments.input),
      ".safetensors or .npz with q, k, v: [n, d], [heads, n, d] or [batch, heads, n, d]")(
      "output", options::value(&arguments.output), ".safetensors to write: out, and attention and kernel when asked")(
      "causal", options::bool_switch(&arguments.causal), "row i sees no later token")(
      "matrix", options::bool_switch(&arguments.matrix), "also write the attention matrix")(
      "kernel", options::bool_switch(&arguments.kernel),
      "also write the unnormalised kernel and its log stabilisers: a library that leaves its stabilisers in has "
      "kernel_ij exp(-kernel_log_rows_i - kernel_log_columns_j)")(
      "precision", options::value(&arguments.precision)->default_value("f32"), "f32 or f64")(
      "round", options::value(&round)->default_value("none"),
      "f16 or bf16: inputs and results of products and exponentials rounded to it, kept in the precision")(
      "state", options::value(&arguments.state),
      "tensors to use instead of drawing or learning, [rows, columns] for all heads or [heads, rows, columns]; "
      "`describe SPEC` lists their names")(
      "write-state", options::value(&arguments.write_state),
      ".safetensors to write: what was drawn and learnt for the heads of the first batch, as --state reads it")(
      "calibrate", options::value(&arguments.calibrate), "file that fitted methods learn from (default: the input)")(
      "seed", options::value(&arguments.seed)->default_value(1), "base seed");
  if (!parse_arguments("attend", visible, words, {{"spec", 1}})) return 0;
  for (const auto& [value, name] :
       {std::pair(arguments.spec, "a method spec"), std::pair(arguments.input, "--input FILE"),
        std::pair(arguments.output, "--output FILE")})
    if (value.empty()) throw Misuse(fmt::format("attend: {} is missing; see attnbench attend --help", name));
  if (arguments.precision != "f32" && arguments.precision != "f64")
    throw Misuse("--precision " + arguments.precision + ": expected f32 or f64");
  if (!arguments.output.ends_with(".safetensors"))
    throw Misuse("--output " + arguments.output + ": expected a name that ends in .safetensors");

  arguments.rounding = parse_rounding(round);
  const Params params("methods", arguments.spec);
  const AttentionFile file = read_attention_file(arguments.input);
  refuse_absurd_sizes(file.nq, file.nk, file.d, file.dv);
  std::cerr << remark_on_axes(file);
  const bool fitted = find<MethodEntry>(params.name()).fitted(params);
  if (fitted && arguments.calibrate.empty() && arguments.state.empty())
    std::cerr << "attnbench: " << params.name()
              << " learns from the input itself (in sample); --calibrate FILE names another\n";
  for (const auto& caveat :
       find<MethodEntry>(params.name()).caveats(params, {.nq = file.nq, .nk = file.nk, .d = file.d, .dv = file.dv}))
    std::cerr << "attnbench: note: " << caveat << "\n";
  std::optional<AttentionFile> other;
  if (!arguments.calibrate.empty()) other = read_attention_file(arguments.calibrate);
  const AttentionFile& calibration = other ? *other : file;
  if (calibration.heads != file.heads || calibration.d != file.d)
    throw Misuse(fmt::format("--calibrate {}: {} heads with d = {}; expected {} heads with d = {} as in the input",
                             arguments.calibrate, calibration.heads, calibration.d, file.heads, file.d));
  if (!arguments.write_state.empty() && !arguments.write_state.ends_with(".safetensors"))
    throw Misuse("--write-state " + arguments.write_state + ": expected a name that ends in .safetensors");
  std::vector<Tensors> states;
  if (!arguments.state.empty()) states = read_state(arguments.state);
  try {
    const auto result = arguments.precision == "f32" ? attend<float>(arguments, params, file, calibration, states)
                                                     : attend<double>(arguments, params, file, calibration, states);
    write_safetensors(arguments.output, result, arguments.precision == "f32" ? Precision::f32 : Precision::f64);
  } catch (const Skip& e) {
    throw Misuse(e.what());
  }
  return 0;
}

const bool registered = add(CommandEntry{.text = {.name = "attend",
                                                  .summary = "one method on the heads of a file",
                                                  .formula = "attend SPEC --input FILE --output FILE [OPTIONS]"},
                                         .run = run,
                                         .makes_methods = true});

}  // namespace
}  // namespace attnbench::attend_command
