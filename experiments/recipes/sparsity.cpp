// How concentrated attention rows are: source 000's second argument. Softmax rows are sparse where logits are large,
// linear attention with elementwise features is near average pooling, a finite random-feature matrix is neither.
#include "harness/runner/recipe.hpp"

namespace attnbench {
namespace {

const std::vector<std::string> methods{"softmax",     "performer",       "linear", "truncated:window=16",
                                       "vq:codes=64", "local:window=16", "uniform"};

const Description text{.name = "sparsity",
                       .summary = "Concentration of the attention rows",
                       .formula =
                           "Softmax attention is sparse and linear attention dense, near average pooling as the "
                           "sequence grows.",
                       .reference = "Su 2021, kexue.fm/archives/8338"};

std::vector<RunRequest> runs(RecipeSize size) {
  const Index n = size == RecipeSize::smoke ? 64 : 1024;
  RunRequest request{.experiment = "sparsity",
                     .methods = methods,
                     .inputs = {"gaussian", "gaussian:scale=0.5", "model"},
                     .n = {n / 16, n / 8, n / 4, n / 2, n},
                     .causal = false,
                     .replicates = size == RecipeSize::full    ? 10
                                   : size == RecipeSize::quick ? 5
                                                               : 2};
  return {request};
}

Panel panel(const std::string& title, const std::string& input, const std::string& metric, const std::string& label,
            const std::string& scale) {
  return {.title = title,
          .where = {{"experiment", "sparsity"}, {"input", input}, {"causal", 0}, {"method", methods}},
          .x = {"n"},
          .x_label = "sequence length n",
          .x_scale = "log2",
          .y = metric,
          .y_label = label,
          .y_scale = scale};
}

std::vector<Figure> figures(RecipeSize) {
  return {figure(
      "sparsity", text, "Effective support and concentration of the rows",
      "Effective support exp(H) over n (1 is average pooling) and the share of entries below 1/(10 n); means over "
      "rows, 95 % intervals over inputs; bidirectional, d = 64. The real head is layer 2, head 1 of the byte-level "
      "transformer.",
      {panel("gaussian", "gaussian", "relative_support", "effective support / n", "log10"),
       panel("gaussian, scale 0.5", "gaussian:scale=0.5", "relative_support", "effective support / n", "log10"),
       panel("real head", "model", "relative_support", "effective support / n", "log10"),
       panel("gaussian", "gaussian", "fraction_below", "share of entries below 1/(10 n)", "linear"),
       panel("gaussian, scale 0.5", "gaussian:scale=0.5", "fraction_below", "share of entries below 1/(10 n)",
             "linear"),
       panel("real head", "model", "fraction_below", "share of entries below 1/(10 n)", "linear")})};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures});

}  // namespace
}  // namespace attnbench
