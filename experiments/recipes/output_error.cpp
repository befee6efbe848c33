// The error of the normalised output against the budget, on random and on real heads, with the uniform null. Random
// features by themselves, at the sizes of Performer's Fig. 4: recipe performer-fig4.
#include "harness/runner/recipe.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const Specs methods{"performer",
                    "performer:projection=iid",
                    "performer:features=trig",
                    "linear",
                    "linformer:projection=mean-pool",
                    "vq",
                    "local:window=32",
                    "uniform",
                    "softmax"};  // in float against double: the rounding floor
const Description text{.name = "output-error",
                       .summary = "Attention output: error against the budget, with the uniform null",
                       .formula =
                           "More features bring the output nearer to exact softmax attention where the logits are "
                           "small; where they are large, random features lose to the mean of V, and trigonometric "
                           "features, better at small scale, lose to positive ones.",
                       .reference = "Choromanski et al. 2020, arXiv:2009.14794, Fig. 4, for random features"};

std::vector<RunRequest> runs(RecipeSize size) {
  const bool smoke = size == RecipeSize::smoke;
  const Specs budgets = smoke ? Specs{"8", "16"} : Specs{"16", "32", "64", "128", "256"};
  const Index replicates = size == RecipeSize::full ? 15 : smoke ? 2 : 5;
  const RunRequest comparison{.experiment = "attention-error",
                              .methods = methods,
                              .inputs = {"gaussian:scale=0.5", "gaussian", "model"},
                              .n = {smoke ? 64 : 1024},
                              .causal = false,
                              .precision = Precision::f32,
                              .sweep = {{"m", budgets}, {"r", budgets}, {"codes", budgets}},
                              .replicates = replicates};
  return {comparison};
}

Panel panel(const std::string& title, const std::string& input, const Specs& references) {
  return {.title = title,
          .where = {{"experiment", "attention-error"},
                    {"matrix", true},
                    {"input", input},
                    {"causal", 0},
                    {"precision", "f32"},
                    {"method", methods}},
          .x = {"m", "r", "codes"},
          .x_label = "budget: m, r or codes",
          .x_scale = "log2",
          .y = "relative_output_error",
          .y_label = "|A'V - AV| / |AV|  (Frobenius)",
          .y_scale = "log10",
          .references = references};
}

std::vector<Figure> figures(RecipeSize) {
  const Specs flat{"uniform", "linear", "local:window=32", "softmax"};
  return {figure(
      "output-error", text, "Error of the attention output",
      "Relative Frobenius error of the output at n = 1024, d = 64, bidirectional; 95 % intervals over inputs and "
      "draws. Dotted: methods without that budget. Above the line of uniform, a method is worse than the mean of "
      "V; softmax is what float itself errs by. The real head is layer 2, head 1 of the byte-level "
      "transformer, seen bidirectionally.",
      {panel("gaussian, scale 0.5", "gaussian:scale=0.5", flat), panel("gaussian, scale 1", "gaussian", flat),
       panel("real head", "model", flat)})};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures});

}  // namespace
}  // namespace attnbench
