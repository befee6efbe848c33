// The error of the normalised output against the budget, on random inputs and on heads of a model, beside the mean of
// V. Recipe performer-fig4 has random features only, at the sizes of Performer's Fig. 4.
#include <fmt/format.h>

#include "experiments/recipes/real_heads.hpp"

namespace attnbench::output_error_recipe {
namespace {

const Specs budgeted{"performer", "performer:projection=iid", "performer:features=trig", "vq"};
const Specs flat{"linear", "linear:inputs=unscaled", "local:window=32", "uniform", "softmax"};

std::string positive(Index m) { return fmt::format("performer:m={}", m); }
std::string trigonometric(Index m) { return positive(m) + ",features=trig"; }

struct Measured {
  std::vector<Index> budgets;
  std::vector<LawOrHead> inputs;
  Cells cells;

  Samples error(const LawOrHead& input, const std::string& method) const {
    return cells.input(input.input).method(method).scalar("relative_output_error");
  }
};

Measured run(Recipe& recipe, Index n) {
  Measured all{
      .budgets = recipe.sized<std::vector<Index>>({8, 16}, {16, 128, 256}, {16, 32, 64, 128, 256}),
      .inputs = laws_and_heads({{"gaussian, scale 0.5", "gaussian:scale=0.5"}, {"gaussian, scale 1", "gaussian"}},
                               telling_heads_of_models(recipe)),
      .cells = {}};
  Specs values, methods = budgeted;
  for (const Index budget : all.budgets) values.push_back(std::to_string(budget));
  methods.insert(methods.end(), flat.begin(), flat.end());
  RunRequest request{.experiment = "attention-error:matrix=false",
                     .methods = methods,
                     .inputs = {},
                     .n = {n},
                     .precision = Precision::f32,
                     .sweep = {{"m", values}, {"codes", values}},
                     .replicates = recipe.sized<Index>(2, texts)};
  all.cells = run_on(recipe, request, telling_heads_of_models(recipe));  // with the models' own masks
  request.inputs = {all.inputs[0].input, all.inputs[1].input};
  request.methods.push_back("linformer:projection=mean-pool");  // it has no causal form
  request.sweep.push_back({"r", values});
  request.causal = false;
  all.cells = all.cells + recipe.run(request);
  // Random inputs are not limited by the number of texts, so they get more replicates.
  const Index few = all.budgets.front(), many = all.budgets.back();
  request.methods = {positive(few), positive(many), trigonometric(many / 2), trigonometric(many), "uniform"};
  request.sweep.clear();
  request.replicates = recipe.sized<Index>(2, 128, 256);
  all.cells = all.cells + recipe.run(request);
  return all;
}

void draw(Recipe& recipe, const Measured& all, Index n) {
  std::vector<Panel> panels;
  const RealHead head = telling_heads(recipe).back();
  for (const LawOrHead& input : {all.inputs[0], all.inputs[1], LawOrHead{head.name(), head.input()}})
    panels.push_back({.title = input.name,
                      .cells = all.cells.input(input.input),
                      .x = {"m", "r", "codes"},
                      .x_label = "budget: m, r or codes",
                      .x_scale = "log2",
                      .y = "relative_output_error",
                      .y_label = "|A'V - AV| / |AV|  (Frobenius)",
                      .y_scale = "log10",
                      .interval = "median",
                      .references = flat});
  recipe.figure(
      "output-error", "Error of the attention output",
      fmt::format("Relative Frobenius error of the output at n = {}, d = 64; medians over {} draws or texts. "
                  "Gaussian inputs without a mask, the head of the project's byte-level model with its causal "
                  "mask. Dotted: methods without that budget. Above the line of uniform, a method is worse "
                  "than the mean of V; the line of softmax is the rounding of float.",
                  n, texts),
      panels);
}

void write(Recipe& recipe) {
  const Index n = recipe.sized<Index>(64, 256, 512);
  const Measured all = run(recipe, n);
  draw(recipe, all, n);

  const Index few = all.budgets.front(), many = all.budgets.back();
  // The error of the first of each pair over that of the second; the heads of a model form one region.
  struct Pair {
    std::string name, first, second;
  };
  const auto against = [=, &recipe](const std::vector<LawOrHead>& inputs, const std::vector<Pair>& pairs) {
    const double rate = recipe.error_rate(pairs.size() * inputs.size());
    std::vector<Region> regions;
    for (const LawOrHead& input : inputs)
      for (const auto& [name, first, second] : pairs)
        region(regions, input.part)
            .comparisons.push_back(
                {input.name + name, median_ratio(all.error(input, first), all.error(input, second), rate)});
    return below_where(1, regions);
  };
  const std::vector<LawOrHead> laws(all.inputs.begin(), all.inputs.begin() + 2);
  const std::string where = fmt::format(
      "Gaussian inputs without a mask, entries of Q and K of standard deviation (scale) 0.5 and 1, n = {}, d = 64; "
      "medians over at least 128 draws. {}. The heads of a model count as one setting",
      n, heads_in_words(telling_heads_of_models(recipe), n));
  recipe.judge(
      {.text = fmt::format("On Gaussian inputs the attention output errs less with {} positive features than with {}",
                           many, few),
       .definition = fmt::format("relative Frobenius error of the output with m = {} orthogonal vectors over that with "
                                 "m = {}, Gaussian inputs, entries of Q and K of standard deviation (scale) 0.5 and 1, "
                                 "no mask, n = {}, d = 64, medians over at least 128 inputs and draws",
                                 many, few, n),
       .threshold = "1: equal errors",
       .because = "a mean of more draws errs less where the estimate has any relation to its truth"},
      [=] {
        return against(laws, {{"", positive(many), positive(few)}});
      });
  recipe.judge(
      {.text = "The attention output errs less with positive than with trigonometric features, both at equal numbers "
               "of projections and at equal numbers of features",
       .source = "Choromanski et al. 2020, arXiv:2009.14794, section 4.2",
       .quotation = "Positive features produce lower error than trigonometric sin/cos features.",
       .definition =
           fmt::format(
               "relative Frobenius error of the output, positive over trigonometric, orthogonal vectors: {0} "
               "projections each as in the paper, and {0} positive features against {1} projections of trigonometric "
               "ones, which make two features each; a setting holds where both ratios are below 1, on every head; ",
               many, many / 2) +
           where,
       .threshold = "1: equal errors",
       .expected = Ruling::depends,
       .because = "relative to a weight, errors grow as exp |q + k|^2 of positive features and exp |q - k|^2 of "
                  "trigonometric ones: trigonometric features are better while logits are small"},
      [=] {
        return against(all.inputs, {{", equal projections", positive(many), trigonometric(many)},
                                    {", equal features", positive(many), trigonometric(many / 2)}});
      });
  recipe.judge(
      {.text = fmt::format(
           "On Gaussian inputs Performer's positive features with m = {} err less than the mean of V (n = {}, d = 64)",
           many, n),
       .definition = fmt::format(
           "relative Frobenius error of the output with {} positive features of orthogonal vectors over that of the "
           "mean of V, Gaussian inputs, entries of Q and K of standard deviation (scale) 0.5 and 1, no mask, n = {}, d "
           "= 64, medians over at least 128 inputs and draws. No paper claims this: it is our own question",
           many, n),
       .threshold = "1: the mean of V, which looks at no key",
       .expected = Ruling::open,
       .because = "no paper compares the two"},
      [=] {
        return against(laws, {{"", positive(many), "uniform"}});
      });
}

const bool registered =
    add(RecipeEntry{.text = {.name = "output-error",
                             .summary = "Attention output: error against the budget, beside the mean of V",
                             .formula = "Do more features bring the output nearer to exact softmax attention, and "
                                        "nearer than the mean of V?",
                             .reference = "Choromanski et al. 2020, arXiv:2009.14794, Fig. 4, for random features"},
                    .write = write});

}  // namespace
}  // namespace attnbench::output_error_recipe
