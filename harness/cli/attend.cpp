// attnbench attend: one method on the heads of a file.
#include <fmt/format.h>

#include <iostream>

#include "harness/cli/command.hpp"
#include "harness/core/approximation.hpp"
#include "harness/inputs/input.hpp"
#include "harness/inputs/tensor_file.hpp"
#include "harness/inputs/write_safetensors.hpp"
#include "harness/linalg/rounding.hpp"
#include "harness/machine/resources.hpp"
#include "harness/measures/attention_matrix.hpp"

namespace attnbench {
namespace {

struct Arguments {
  std::string spec, input, output, precision, state, calibrate;
  bool causal = false, matrix = false, kernel = false;
  Rounding rounding = Rounding::none;
  std::uint64_t seed = 1;
};

// Q and K times d^-1/4 each (methods.md 0), as an owned head of the wanted precision.
template <class T>
HeadData<T> scaled(const Head<double>& raw, Rounding rounding) {
  const double factor = std::pow(static_cast<double>(raw.Q.cols()), -0.25);
  HeadData<T> head{(raw.Q * factor).template cast<T>(), (raw.K * factor).template cast<T>(), raw.V.template cast<T>()};
  for (Matrix<T>* X : {&head.Q, &head.K, &head.V}) round_to<T>(rounding, *X);
  return head;
}

// Appends a head's matrix to a tensor whose last two axes are that matrix.
template <class T>
void append(Tensor& tensor, const Matrix<T>& matrix) {
  for (Index i = 0; i < matrix.size(); ++i) tensor.values.push_back(static_cast<double>(matrix.data()[i]));
}

Tensor tensor_of(std::vector<Index> leading, Index rows, Index columns) {
  leading.insert(leading.end(), {rows, columns});
  return {leading, {}};
}

template <class T>
NamedTensors attend(const Arguments& arguments, const Params& params, const AttentionFile& file,
                    const AttentionFile& calibration, const Tensors* state) {
  Shape shape{file.nq, file.nk, file.d, file.dv, {}, arguments.precision == "f32" ? Precision::f32 : Precision::f64};
  shape.mask.causal = arguments.causal;
  shape.mask.offset = arguments.causal ? file.nk - file.nq : 0;
  const auto claims = find<MethodEntry>(params.name()).claims(params, shape);
  if (arguments.matrix && !claims.no_attention_matrix.empty())
    throw Misuse(params.spec() + " has no attention matrix: " + claims.no_attention_matrix + "; leave out --matrix");
  NamedTensors result{{"out", tensor_of(file.leading, file.nq, file.dv)}};
  if (arguments.matrix) result["attention"] = tensor_of(file.leading, file.nq, file.nk);
  if (arguments.kernel) {
    result["kernel"] = tensor_of(file.leading, file.nq, file.nk);
    result["kernel_log_rows"] = tensor_of(file.leading, file.nq, 1);
    result["kernel_log_columns"] = tensor_of(file.leading, file.nk, 1);
  }
  Context context(allowed_cores(), arguments.rounding);
  for (Index b = 0; b < file.batches; ++b)
    for (Index h = 0; h < file.heads; ++h) {
      const HeadData<T> head = scaled<T>(file.head(b, h), arguments.rounding);
      const HeadData<double> learnt =
          scaled<double>(calibration.head(std::min(b, calibration.batches - 1), h), arguments.rounding);
      const Head<double> learnt_view = learnt.view();
      const auto method = make_approximation<T>({.shape = shape,
                                                 .params = params,
                                                 .streams = Streams(arguments.seed),
                                                 .head = h,
                                                 .calibration = &learnt_view,
                                                 .state = state});
      Matrix<T> out(file.nq, file.dv);
      method->attend(head.view(), shape.mask, context, out);
      require_finite<T>(out, fmt::format("{} on batch {}, head {}: output", params.spec(), b, h));
      append(result["out"], out);
      if (arguments.matrix) append(result["attention"], attention_matrix(*method, head.view(), shape.mask, context));
      if (!arguments.kernel) continue;
      if (!method->kernel()) throw Misuse(params.spec() + " estimates no kernel; leave out --kernel");
      Matrix<T> block(file.nq, file.nk);
      std::vector<T> log_rows(static_cast<size_t>(file.nq)), log_columns(static_cast<size_t>(file.nk));
      method->kernel()->kernel(head.view(), context, block, log_rows, log_columns);
      for (Index i = 0; i < file.nq; ++i)
        for (Index j = 0; j < file.nk; ++j)
          block(i, j) *= std::exp(log_rows[static_cast<size_t>(i)] + log_columns[static_cast<size_t>(j)]);
      append(result["kernel"], block);
      for (const T x : log_rows) result["kernel_log_rows"].values.push_back(static_cast<double>(x));
      for (const T x : log_columns) result["kernel_log_columns"].values.push_back(static_cast<double>(x));
    }
  return result;
}

Tensors read_state(const std::string& path) {
  Tensors state;
  for (const auto& [name, tensor] : read_tensors(path)) state[name] = as_matrix(tensor, name);
  return state;
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
      "also write the kernel estimate before normalising, and the logarithms of what stabilised it: a library that "
      "does not take its stabilisers out again has kernel_ij exp(-kernel_log_rows_i - kernel_log_columns_j)")(
      "precision", options::value(&arguments.precision)->default_value("f32"), "f32 or f64")(
      "round", options::value(&round)->default_value("none"),
      "f16 or bf16: inputs and results of products and exponentials rounded to it, kept in the precision")(
      "state", options::value(&arguments.state),
      "tensors to use instead of drawing or learning: projection [m, d], codebook [c, d], a [1, 1] and what else the "
      "method has")("calibrate", options::value(&arguments.calibrate),
                    "file that fitted methods learn from (default: the input)")(
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
  const bool fitted = find<MethodEntry>(params.name()).fitted(params);
  if (fitted && arguments.calibrate.empty() && arguments.state.empty())
    std::cerr << "attnbench: " << params.name()
              << " learns from the input itself (in sample); --calibrate FILE names another\n";
  for (const auto& caveat :
       find<MethodEntry>(params.name()).caveats(params, {.nq = file.nq, .nk = file.nk, .d = file.d, .dv = file.dv}))
    std::cerr << "attnbench: note: " << caveat << "\n";
  const AttentionFile calibration = arguments.calibrate.empty() ? file : read_attention_file(arguments.calibrate);
  if (calibration.heads != file.heads || calibration.d != file.d)
    throw Misuse(fmt::format("--calibrate {}: {} heads with d = {}; expected {} heads with d = {} as in the input",
                             arguments.calibrate, calibration.heads, calibration.d, file.heads, file.d));
  std::optional<Tensors> state;
  if (!arguments.state.empty()) state = read_state(arguments.state);
  try {
    const auto result = arguments.precision == "f32"
                            ? attend<float>(arguments, params, file, calibration, state ? &*state : nullptr)
                            : attend<double>(arguments, params, file, calibration, state ? &*state : nullptr);
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
}  // namespace attnbench
