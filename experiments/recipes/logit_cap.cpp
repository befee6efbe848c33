// How much a cap on the logits changes attention: the output of heads, and the next byte of a model that was trained
// without one.
#include <fmt/format.h>

#include "experiments/recipes/field.hpp"
#include "experiments/recipes/real_heads.hpp"

namespace attnbench::logit_cap_recipe {
namespace {

const std::vector<double> caps{2, 5, 10, 20, 50};  // Gemma 2 has 50
const std::string error = "relative_output_error", lost = "excess_bits";

std::string capped(double cap) { return fmt::format("capped:cap={:g}", cap); }

void write(Recipe& recipe) {
  const Index n = recipe.sized<Index>(64, 512, 1024);
  const auto heads = telling_heads_of_models(recipe);
  RunRequest request{
      .experiment = "attention-error:matrix=false", .n = {n}, .replicates = recipe.sized<Index>(2, 24, texts)};
  for (const double cap : caps) request.methods.push_back(capped(cap));
  const Cells errors = run_on(recipe, request, heads);
  request.experiment = "model-loss";
  request.inputs = {"model"};
  request.methods.push_back("uniform");
  request.precision = Precision::f32;
  const Cells losses = recipe.run(request);
  recipe.figure(
      "logit-cap", "Attention with capped logits",
      fmt::format(
          "Left: error of the output, of each model two heads, medians over texts. Right: the byte-level model with "
          "the cap in every head, not trained with it, and with the mean of V; means over texts. 95 % intervals. "
          "{}.",
          heads_in_words(heads, n)),
      {{.title = "output of heads",
        .cells = errors.where({{"input", inputs_of(first_and_last(heads))}}),
        .x = {"cap"},
        .x_label = "cap on the logits",
        .x_scale = "log2",
        .y = error,
        .y_label = "relative error of the output",
        .y_scale = "log10",
        .interval = "median",
        .series = {"input"}},
       {.title = "drop-in, all heads",
        .cells = losses,
        .x = {"cap"},
        .x_label = "cap on the logits",
        .x_scale = "log2",
        .y = lost,
        .y_label = "bits per byte above exact attention",
        .references = {"uniform"}}});
  recipe.judge({.text = "A cap of 50 on the logits changes the output of attention by less than 1 %, on heads of " +
                        three_models,
                .source = "Gemma Team 2024 (Gemma 2), section 2",
                .paraphrase = "the model caps the logits of its attention layers at 50",
                .definition = fmt::format("the relative Frobenius error of the output, median over texts, a region for "
                                          "each model. {}",
                                          heads_in_words(heads, n)),
                .threshold = "0.01, our own: the source gives no number",
                .because = "c tanh(x / c) differs from x by x^3 / (3 c^2), which is 0.13 for a logit of 10"},
               [=, &recipe] {
                 std::vector<Region> regions;
                 for (const RealHead& head : heads)
                   region(regions, head.part())
                       .comparisons.push_back(
                           {head.name(), median_of(errors.input(head.input()).method(capped(50)).scalar(error),
                                                   recipe.error_rate(heads.size()))});
                 return below_where(0.01, regions);
               });
  recipe.judge({.text = "A cap on the logits costs a model that was trained without it less than 0.01 bits a byte",
                .definition = fmt::format("bits per byte above exact attention, this project's byte-level model with "
                                          "capped logits in every head, n = {}, the median over texts, by the cap",
                                          n),
                .threshold = "0.01 bits, our own",
                .expected = Ruling::depends,
                .because = "it costs nothing where the cap is above the logits of the model"},
               [=, &recipe] {
                 std::vector<Region> regions;
                 for (const double cap : caps)
                   regions.push_back({.name = fmt::format("cap {:g}", cap),
                                      .comparisons = {{"", median_of(losses.method(capped(cap)).scalar(lost),
                                                                     recipe.error_rate(caps.size()))}},
                                      .coordinate = cap});
                 return below_where(0.01, regions, "cap");
               });
}

const bool registered =
    add(RecipeEntry{.text = {.name = "logit-cap",
                             .summary = "Softmax of capped logits, as in Gemma 2",
                             .formula = "How much does a cap on the logits change attention?",
                             .reference = "Gemma Team 2024 (Gemma 2); Bello et al. 2016, arXiv:1611.09940"},
                    .write = write});

}  // namespace
}  // namespace attnbench::logit_cap_recipe
