// The error of the normalised output against m, on random and on real heads, with the uniform null and the exact floor.
#include "experiments/recipes/figure.hpp"

namespace attnbench {
namespace {

const std::vector<std::string> methods{"performer",
                                       "performer:projection=iid",
                                       "performer:features=trig",
                                       "linear",
                                       "linformer:projection=mean-pool",
                                       "vq",
                                       "local:window=32",
                                       "uniform"};
const std::vector<std::string> inputs{"gaussian:scale=0.5", "gaussian", "model"};

const Description text{.name = "output-error",
                       .summary = "Attention output: error against the budget, with the uniform null",
                       .formula =
                           "More features bring the output nearer to exact softmax attention, where the input's "
                           "logits are small; on inputs with larger logits random features lose to the mean of V.",
                       .reference = "Choromanski et al. 2020, arXiv:2009.14794, Fig. 4"};

std::vector<std::string> budgets(RecipeSize size) {
  if (size == RecipeSize::smoke) return {"8", "16"};
  return {"16", "32", "64", "128", "256"};
}

std::vector<RunRequest> runs(RecipeSize size) {
  RunRequest request{.experiment = "attention-error",
                     .methods = methods,
                     .inputs = inputs,
                     .n = {size == RecipeSize::smoke ? 64 : 1024},
                     .causal = false,
                     .sweep = {{"m", budgets(size)}, {"r", budgets(size)}, {"codes", budgets(size)}},
                     .replicates = size == RecipeSize::full    ? 15
                                   : size == RecipeSize::quick ? 3
                                                               : 2};
  return {request};
}

// The methods of a panel by what their budget is called.
Panel panel(const std::string& input, const std::string& title) {
  return {.title = title,
          .where = {{"experiment", "attention-error"}, {"input", input}, {"causal", 0}, {"method", methods}},
          .x = {"m", "r", "codes"},
          .x_label = "budget: m, r or codes",
          .x_scale = "log2",
          .y = "relative_output_error",
          .y_label = "|A'V - AV| / |AV|  (Frobenius)",
          .y_scale = "log10",
          .references = {"uniform", "linear", "local:window=32"}};
}

std::vector<Figure> figures(RecipeSize) {
  return {figure(
      "output-error", text, "Error of the attention output",
      "Relative Frobenius error of the output at n = 1024, d = 64, bidirectional; 95 % intervals over inputs and "
      "draws. Dotted: methods without that budget. Above the line of uniform, a method is worse than the mean "
      "of V. The model's head is layer 2, head 1 of the byte-level transformer.",
      {panel("gaussian:scale=0.5", "gaussian, scale 0.5"), panel("gaussian", "gaussian, scale 1"),
       panel("model", "real head")})};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures});

}  // namespace
}  // namespace attnbench
