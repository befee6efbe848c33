// The error of the normalised output against the budget, on random and on real heads, with the uniform null. Random
// features by themselves, at the sizes of Performer's Fig. 4: recipe performer-fig4.
#include <fmt/format.h>

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
const Specs inputs{"gaussian:scale=0.5", "gaussian", "model"};
const Specs titles{"gaussian, scale 0.5", "gaussian, scale 1", "real head"};
const std::string experiment = "attention-error:matrix=false";

const Description text{.name = "output-error",
                       .summary = "Attention output: error against the budget, with the uniform null",
                       .formula =
                           "More features bring the output nearer to exact softmax attention where the logits are "
                           "small; where they are large, random features lose to the mean of V, and trigonometric "
                           "features, better at small scale, lose to positive ones.",
                       .reference = "Choromanski et al. 2020, arXiv:2009.14794, Fig. 4, for random features"};

Specs budgets(RecipeSize size) {
  if (size == RecipeSize::smoke) return {"8", "16"};
  if (size == RecipeSize::quick) return {"16", "64", "256"};
  return {"16", "32", "64", "128", "256"};
}

Index length(RecipeSize size) { return size == RecipeSize::smoke ? 64 : size == RecipeSize::quick ? 512 : 1024; }

std::vector<RunRequest> runs(RecipeSize size) {
  const Specs all = budgets(size);
  const RunRequest comparison{.experiment = experiment,
                              .methods = methods,
                              .inputs = inputs,
                              .n = {length(size)},
                              .causal = false,
                              .precision = Precision::f32,
                              .sweep = {{"m", all}, {"r", all}, {"codes", all}},
                              .replicates = size == RecipeSize::smoke   ? 2
                                            : size == RecipeSize::quick ? 8
                                                                        : 15};
  return {comparison};
}

Panel panel(const std::string& title, const std::string& input, const Specs& references) {
  return {
      .title = title,
      .where = {{"experiment", experiment}, {"input", input}, {"causal", 0}, {"precision", "f32"}, {"method", methods}},
      .x = {"m", "r", "codes"},
      .x_label = "budget: m, r or codes",
      .x_scale = "log2",
      .y = "relative_output_error",
      .y_label = "|A'V - AV| / |AV|  (Frobenius)",
      .y_scale = "log10",
      .references = references};
}

std::vector<Figure> figures(RecipeSize size) {
  const Specs flat{"uniform", "linear", "local:window=32", "softmax"};
  std::vector<Panel> panels;
  for (size_t i = 0; i < inputs.size(); ++i) panels.push_back(panel(titles[i], inputs[i], flat));
  return {figure(
      "output-error", text, "Error of the attention output",
      fmt::format("Relative Frobenius error of the output at n = {}, d = 64, bidirectional; 95 % intervals over inputs "
                  "and draws. Dotted: methods without that budget. Above the line of uniform, a method is worse than "
                  "the mean of V; softmax is what float itself errs by. The real head is layer 2, head 1 of the "
                  "byte-level transformer, seen bidirectionally.",
                  length(size)),
      panels)};
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  const std::string few = budgets(size).front(), many = budgets(size).back();
  // a over b, an input a region.
  const auto against = [&](const std::string& a, const std::string& b) {
    const auto error = [&](const std::string& input, const std::string& method) {
      return results.scalar({{"method", method}, {"input", input}}, "relative_output_error");
    };
    std::vector<Region> regions;
    for (size_t i = 0; i < inputs.size(); ++i)
      regions.push_back(
          {titles[i], {{"", ratio(error(inputs[i], a), error(inputs[i], b), share_of_error_rate(inputs.size()))}}});
    return regions;
  };
  const std::string positive = "performer:m=" + many, trigonometric = "performer:features=trig,m=" + many;
  // Relative to a weight, errors grow as exp |q + k|^2 of positive features and exp |q - k|^2 of trigonometric ones:
  // the latter are better while logits are small, and worse where small weights have large errors.
  return {below_where(1,
                      {fmt::format("The output errs less with {} positive features than with {}", many, few),
                       Verdict::Outcome::conditional},
                      against(positive, "performer:m=" + few)),
          below_where(
              1,
              {fmt::format("The output errs less with positive features than with trigonometric ones (m = {})", many),
               Verdict::Outcome::conditional},
              against(positive, trigonometric)),
          below_where(1,
                      {fmt::format("Performer errs less than the mean of V (m = {}, d = 64)", many),
                       Verdict::Outcome::ambiguous},
                      against(positive, "uniform"))};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
