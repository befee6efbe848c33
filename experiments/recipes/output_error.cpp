// The error of the normalised output against the budget, on random and on real heads, with the uniform null; and at the
// sizes of Performer's Fig. 4. Orderings flip with the scale of the input, which that figure does not state.
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
                    "uniform"};
const Specs random_features{"performer", "performer:projection=iid", "performer:features=trig",
                            "performer:features=trig,projection=iid", "uniform"};

const Description text{.name = "output-error",
                       .summary = "Attention output: error against the budget, with the uniform null",
                       .formula =
                           "More features bring the output nearer to exact softmax attention where the logits are "
                           "small; where they are large, random features lose to the mean of V, and trigonometric "
                           "features, better at small scale, lose to positive ones.",
                       .reference = "Choromanski et al. 2020, arXiv:2009.14794, Fig. 4"};

std::vector<RunRequest> runs(RecipeSize size) {
  const bool smoke = size == RecipeSize::smoke;
  const Specs budgets = smoke ? Specs{"8", "16"} : Specs{"16", "32", "64", "128", "256"};
  const Index replicates = size == RecipeSize::full ? 15 : smoke ? 2 : 5;
  const RunRequest comparison{.experiment = "attention-error",
                              .methods = methods,
                              .inputs = {"gaussian:scale=0.5", "gaussian", "model"},
                              .n = {smoke ? 64 : 1024},
                              .causal = false,
                              .sweep = {{"m", budgets}, {"r", budgets}, {"codes", budgets}},
                              .replicates = replicates};
  const RunRequest published{
      .experiment = "attention-error",
      .methods = random_features,
      .inputs = {"gaussian:scale=0.5", "gaussian"},
      .n = {smoke ? 128 : 4096},
      .d = {16},
      .causal = false,
      .sweep = {{"m", smoke ? budgets
                      : size == RecipeSize::quick
                          ? Specs{"16", "64", "192"}
                          : Specs{"16", "32", "48", "64", "80", "96", "112", "128", "144", "160", "176", "192"}}},
      .replicates = replicates};
  return {comparison, published};
}

Panel panel(const std::string& title, const std::string& input, const Specs& compared, Index d,
            const Specs& references) {
  return {.title = title,
          .where = {{"experiment", "attention-error"}, {"input", input}, {"causal", 0}, {"d", d}, {"method", compared}},
          .x = {"m", "r", "codes"},
          .x_label = "budget: m, r or codes",
          .x_scale = "log2",
          .y = "relative_output_error",
          .y_label = "|A'V - AV| / |AV|  (Frobenius)",
          .y_scale = "log10",
          .references = references};
}

std::vector<Figure> figures(RecipeSize) {
  const Specs flat{"uniform", "linear", "local:window=32"};
  return {
      figure(
          "output-error", text, "Error of the attention output",
          "Relative Frobenius error of the output at n = 1024, d = 64, bidirectional; 95 % intervals over inputs and "
          "draws. Dotted: methods without that budget. Above the line of uniform, a method is worse than the mean of "
          "V. The real head is layer 2, head 1 of the byte-level transformer, seen bidirectionally.",
          {panel("gaussian, scale 0.5", "gaussian:scale=0.5", methods, 64, flat),
           panel("gaussian, scale 1", "gaussian", methods, 64, flat), panel("real head", "model", methods, 64, flat)}),
      figure(
          "output-error-d16", text, "Error of the attention output at the sizes of Performer's Fig. 4",
          "n = 4096, d = 16. Trigonometric features beat positive ones at scale 0.5 and lose to them at scale 1; the "
          "published figure does not state its scale.",
          {panel("scale 0.5", "gaussian:scale=0.5", random_features, 16, {"uniform"}),
           panel("scale 1", "gaussian", random_features, 16, {"uniform"})})};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures});

}  // namespace
}  // namespace attnbench
