// The score of a trained model against the speed of its attention, memory as the circle: Fig. 3 of Tay et al.,
// arXiv:2011.04006, with which Lee's lecture closes, for methods that replace attention without training.
#include <fmt/format.h>

#include <algorithm>

#include "experiments/recipes/field.hpp"
#include "experiments/recipes/growth.hpp"
#include "experiments/recipes/real_heads.hpp"

namespace attnbench::score_speed_recipe {
namespace {

constexpr double share = 8;  // budgets are softmax's FLOPs over this

struct Measured {
  Index n;
  Specs candidates = {};
  Cells losses = {}, speeds = {};
};

Measured run(Recipe& recipe) {
  Measured all{.n = recipe.sized<Index>(64, 256, 1024)};
  const Shape shape{.nq = all.n, .nk = all.n, .d = 64, .dv = 64, .mask = {.causal = true}};
  all.candidates = field_at(shape, softmax_flops(shape) / share);
  RunRequest request{.experiment = "model-loss",
                     .methods = all.candidates,
                     .inputs = {"model"},
                     .n = {all.n},
                     .precision = Precision::f32,
                     .replicates = recipe.sized<Index>(2, 20, texts)};
  request.methods.insert(request.methods.end(), {"softmax", "uniform"});
  all.losses = recipe.run(request);
  request.experiment = "speed:" + turns(recipe);
  request.replicates = 1;
  all.speeds = recipe.run(request);
  return all;
}

void draw(Recipe& recipe, const Measured& all) {
  recipe.figure("score-speed", "Bits per byte against speed, memory as the circle",
                fmt::format("The project's byte-level model with a method in place of softmax in every head, not "
                            "trained again; n = {}. Every causal method at 1/{:g} of softmax's FLOPs, or as it is when "
                            "it has no budget and costs no more than softmax. Means over {} texts, in float. Times of "
                            "one head in float on one thread, paired with exact softmax. Dotted lines: exact softmax, "
                            "and the mean of V.",
                            all.n, share, recipe.sized<Index>(2, 20, texts)),
                {{.title = fmt::format("all heads replaced, n = {}", all.n),
                  .kind = "trade",
                  .cells = all.losses + all.speeds,
                  .x = budget_names(),
                  .x_label = "times faster than exact softmax",
                  .x_scale = "log2",
                  .y = "bits_per_byte",
                  .y_label = "bits per byte, better above",
                  .y_scale = "log2",
                  .references = {"softmax", "uniform"},
                  .x_metric = "speedup",
                  .area = "peak_bytes",
                  .area_label = "peak memory of a call beyond inputs and output",
                  .upside_down = true}});
}

bool is_kernel(const std::string& method) {
  const std::string& family = find<MethodEntry>(Params("methods", method).name()).text.family;
  return family == "linear" || family == "kernel";
}

bool is_pattern(const std::string& method) {
  const auto& all = pattern_methods();
  return std::find(all.begin(), all.end(), Params("methods", method).name()) != all.end();
}

// The least loss of these methods on each text. A method without a number, such as one that became NaN, is left out.
Samples least_loss(const Measured& all, const Specs& methods) {
  Samples least;
  for (const auto& method : methods)
    for (const auto& [text, loss] : all.losses.method(method).scalar("excess_bits")) {
      const auto [place, added] = least.try_emplace(text, loss);
      if (!added) place->second = std::min(place->second, loss);
    }
  return least;
}

void judge_kinds(Recipe& recipe, const Measured& all, const std::string& measured) {
  Specs kernels, patterns;
  for (const auto& method : all.candidates) {
    if (is_kernel(method)) kernels.push_back(method);
    if (is_pattern(method)) patterns.push_back(method);
  }
  recipe.judge(
      {.text = "In place of attention in this project's trained byte-level model, and at equal FLOPs, the best method "
               "with a kernel loses fewer bits per byte than the best with a fixed pattern of keys",
       .source = "Tay et al. 2020, arXiv:2011.04006, section 3.6 and Fig. 3",
       .paraphrase =
           "kernel-based models, such as Performers and linear Transformers, make a better trade-off of speed "
           "and performance",
       .definition = measured + fmt::format("; the least over {} methods with a kernel minus the least over {} methods "
                                            "with a fixed pattern, text by text, median over texts. The source trained "
                                            "every model from scratch; nothing is trained here",
                                            kernels.size(), patterns.size()),
       .threshold = "0: both lose as much",
       .expected = Ruling::refuted,
       .because = "without training a kernel must estimate the weights of softmax, whose error on the heads of this "
                  "model is that of the mean of V (random-features-on-real-heads), while a window keeps most of them"},
      [=, &recipe] {
        Samples difference = least_loss(all, kernels);
        for (const auto& [text, loss] : least_loss(all, patterns)) difference[text] -= loss;
        return all_below(0, {{"best kernel minus best pattern", median_of(difference, recipe.error_rate(1))}});
      });
}

void judge_losses(Recipe& recipe, const Measured& all, const std::string& measured) {
  recipe.judge(
      {.text = "How many bits per byte this project's trained byte-level model loses with each method in place "
               "of attention",
       .source = "Tay et al. 2020, arXiv:2011.04006, Fig. 3",
       .paraphrase = "efficient models differ in score, speed and memory",
       .definition = measured + ", median over texts, one number a method",
       .threshold = "the source gives none: 0.01, 0.1 and 1 bit are there for the reader",
       .expected = Ruling::measured,
       .because = "methods differ"},
      [=, &recipe] {
        std::vector<Comparison> losses;
        for (const auto& method : all.candidates)
          losses.push_back({method, median_of(all.losses.method(method).scalar("excess_bits"),
                                              recipe.error_rate(all.candidates.size()))});
        return values_of(losses, {0.01, 0.1, 1});
      });
}

void write(Recipe& recipe) {
  const Measured all = run(recipe);
  recipe.headline(1, "How many bits does faster attention cost a model?");
  draw(recipe, all);
  const std::string measured = fmt::format(
      "bits per byte of the model with the method in every head above those with exact softmax, position by position; "
      "every causal form of this project's field of methods with the budget that takes 1/{:g} of softmax's FLOPs, or "
      "as it is when it has no budget and takes no more than softmax; n = {}, float, {} texts that the model was not "
      "trained on",
      share, all.n, recipe.sized<Index>(2, 20, texts));
  judge_kinds(recipe, all, measured);
  judge_losses(recipe, all, measured);
}

const bool registered =
    add(RecipeEntry{.text = {.name = "score-speed",
                             .summary = "The score of a trained model against speed, memory as the circle",
                             .formula = "How many bits per byte does faster attention cost a trained model?",
                             .reference = "Tay et al. 2020, arXiv:2011.04006, Fig. 3"},
                    .write = write});

}  // namespace
}  // namespace attnbench::score_speed_recipe
