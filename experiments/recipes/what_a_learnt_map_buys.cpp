// A feature map that learnt to imitate softmax attention, against random features and against one that is not learnt.
// Hedgehog's map has 2d features; Performer is given as many. Nothing of the model is trained.
#include <fmt/format.h>

#include "experiments/recipes/field.hpp"
#include "experiments/recipes/real_heads.hpp"

namespace attnbench::what_a_learnt_map_buys_recipe {
namespace {

using Specs = std::vector<std::string>;

const std::string error = "relative_output_error";
const std::string learnt = "linear:features=hedgehog", fixed = "linear:features=softmax,inputs=unscaled",
                  elu = "linear", mean = "uniform";
std::string random(Index d) { return fmt::format("performer:m={}", 2 * d); }

struct Measured {
  Index n;
  std::vector<RealHead> heads;
  Cells cells;

  Index d(const RealHead& head) const { return head.shape(n).d; }
  // The error of the learnt map over that of another method, on a head.
  Estimate over(const std::string& other, const RealHead& head, double error_rate) const {
    const Cells here = cells.input(head.input());
    return median_ratio(here.method(learnt).scalar(error), here.method(other).scalar(error), error_rate);
  }
};

Measured measure(Recipe& recipe) {
  Measured all{.n = recipe.sized<Index>(64, 512, 1024), .heads = telling_heads_of_models(recipe), .cells = {}};
  for (const auto& of_model : by_model(all.heads)) {
    const RunRequest request{.experiment = "attention-error:matrix=false",
                             .methods = {learnt, fixed, elu, random(all.d(of_model.front())), mean},
                             .n = {all.n},
                             .replicates = recipe.sized<Index>(2, 24, texts)};
    all.cells = all.cells + run_on(recipe, request, of_model);
  }
  return all;
}

void draw(Recipe& recipe, const Measured& all) {
  std::vector<Panel> panels;
  for (const auto& heads : by_model(all.heads)) {
    Cells of_model;
    for (const auto& input : inputs_of(heads)) of_model = of_model + all.cells.input(input);
    panels.push_back(
        table_column(of_model, error, fmt::format("error of the output, {}", heads.front().part()), "median", "log10"));
  }
  recipe.figure(
      "what-a-learnt-map-buys", "Feature maps that learnt, that were drawn and that were set",
      fmt::format("Relative error of the output with 2d features (elu + 1 has d), medians over heads, and over "
                  "texts or draws. {}.",
                  heads_in_words(all.heads, all.n)),
      panels);
}

void judge_against(Recipe& recipe, const Measured& all, const std::string& text, const std::string& other_in_words,
                   const std::string& because, const std::function<std::string(const RealHead&)>& other) {
  recipe.judge(
      {.text = text,
       .definition = fmt::format(
           "the relative Frobenius error of the output with the learnt map over that with {}, a region for each "
           "model. The map is Hedgehog's, fitted by 200 steps of Adam to the softmax attention of the same head "
           "on another text. {}",
           other_in_words, heads_in_words(all.heads, all.n)),
       .threshold = equal_errors,
       .expected = Ruling::open,
       .because = because},
      [=, &recipe] {
        std::vector<Region> regions;
        const double rate = recipe.error_rate(all.heads.size());
        for (const RealHead& head : all.heads)
          region(regions, head.part()).comparisons.push_back({head.name(), all.over(other(head), head, rate)});
        return errs_less_where(regions);
      });
}

void write(Recipe& recipe) {
  const Measured all = measure(recipe);
  draw(recipe, all);
  judge_against(
      recipe, all,
      "A feature map that learnt to imitate softmax attention errs less than as many random features, on heads "
      "of " +
          three_models,
      "Performer's positive features, as many", "random features err as exp |q + k|^2, a fit does not have to",
      [all](const RealHead& head) { return random(all.d(head)); });
  judge_against(
      recipe, all,
      "A feature map that learnt to imitate softmax attention errs less than the map from which it started, on "
      "heads of " +
          three_models,
      "softmax over the channels of x and of -x, on inputs that are not scaled",
      "it lessens a cross entropy on another text; the error of the output on this one may grow",
      [](const RealHead&) { return fixed; });
  recipe.judge(
      {.text =
           "By what factor a feature map that learnt to imitate softmax attention errs more or less than the mean of "
           "V, on heads of " +
           three_models,
       .definition = "the relative Frobenius error of the output with the learnt map over that of the mean of V. " +
                     heads_in_words(all.heads, all.n),
       .threshold = "none is claimed. At 1 the map errs as the mean of V, which looks at no key",
       .expected = Ruling::measured,
       .because = "the paper gives losses of models that were trained with the map"},
      [=, &recipe] {
        std::vector<Comparison> ratios;
        for (const RealHead& head : all.heads)
          ratios.push_back({head.name(), all.over(mean, head, recipe.error_rate(all.heads.size()))});
        return values_of(ratios, {1});
      });
}

const bool registered = add(
    RecipeEntry{.text = {.name = "what-a-learnt-map-buys",
                         .summary = "Feature maps that learnt to imitate softmax attention, against random ones",
                         .formula = "How much nearer to softmax attention is a map that learnt to be?",
                         .reference = "Zhang et al. 2024, arXiv:2402.04347; Choromanski et al. 2020, arXiv:2009.14794"},
                .write = write});

}  // namespace
}  // namespace attnbench::what_a_learnt_map_buys_recipe
