// Whether random features beat the mean of V on the heads of a model, over the temperature (the logits times
// logit_scale), with the transforms that leave softmax attention unchanged, at no more FLOPs than softmax.
#include <fmt/format.h>

#include "experiments/recipes/real_heads.hpp"
#include "harness/runner/match.hpp"

namespace attnbench::random_features_on_real_heads_recipe {
namespace {

using Specs = std::vector<std::string>;

// Every map, with the most features that cost no more FLOPs than softmax under the same mask.
Specs candidates(Index n, const std::string& inputs) {
  const Shape shape{.nq = n, .nk = n, .d = 64, .dv = 64, .mask = {.causal = true}};
  const auto flops = [&](const std::string& spec) {
    return *cost_of(Params("methods", spec), shape, Match::Cost::flops);
  };
  Specs all;
  for (const char* map : {"positive", "trig", "hyperbolic", "oprf", "aderf"}) {
    const auto with = [&](Index m) { return fmt::format("performer:features={},m={},{}", map, m, inputs); };
    Index m = 1;
    while (flops(with(m + 1)) <= flops("softmax")) ++m;
    all.push_back(with(m));
  }
  return all;
}

struct Measured {
  Index n, replicates;
  std::vector<double> scales;
  std::vector<RealHead> heads;
  Specs plain, transformed;
  Cells cells;
};

Measured run(Recipe& recipe) {
  const Index n = recipe.sized<Index>(256, 512, 1024);
  Measured all{.n = n,
               .replicates = recipe.sized<Index>(2, 20, texts),
               .scales = recipe.sized<std::vector<double>>({1, 0.03}, {1, 0.25, 0.03}, {1, 0.5, 0.25, 0.1, 0.03}),
               .heads = recipe.sized<std::vector<RealHead>>({typical_head}, {dense_head, typical_head}, all_heads()),
               .plain = candidates(n, "transform=none"),
               .transformed = candidates(n, "transform=full,shift=mean"),
               .cells = {}};
  Specs scales, methods = all.plain;
  for (const double scale : all.scales) scales.push_back(fmt::format("{}", scale));
  methods.insert(methods.end(), all.transformed.begin(), all.transformed.end());
  methods.push_back("uniform");
  all.cells = recipe.run({.experiment = "attention-error:matrix=false",
                          .methods = methods,
                          .inputs = inputs_of(all.heads),
                          .n = {n},
                          .sweep = {{"logit_scale", scales}},
                          .replicates = all.replicates});
  return all;
}

void draw(Recipe& recipe, const Measured& all) {
  std::vector<Panel> panels;
  for (const auto& [title, methods] :
       {std::pair{"inputs as they are", all.plain}, std::pair{"inputs transformed", all.transformed}}) {
    Specs shown = methods;
    shown.push_back("uniform");
    panels.push_back({.title = title,
                      .cells = all.cells.methods(shown),
                      .x = {"logit_scale"},
                      .x_label = "factor of the logits",
                      .x_scale = "log10",
                      .y = "relative_output_error",
                      .y_label = "error of the output / that of the mean of V",
                      .y_scale = "log10",
                      .interval = "median",
                      .ratio_to = "uniform"});
  }
  recipe.figure(
      "random-features-on-real-heads", "Random features on heads of a model, against temperature",
      fmt::format("{} heads of the project's byte-level model with its causal mask, n = {}, d = 64, {} texts. "
                  "Each map with the most features that take no more FLOPs than softmax; m counts projection "
                  "vectors (trig and hyperbolic make two features of each). Frobenius error of the output "
                  "over that of the mean of V, median over heads and texts: above 1, a method errs more "
                  "than the mean of V, which looks at no key.",
                  all.heads.size(), all.n, all.replicates),
      panels);
}

// The error of the best candidate over that of the mean of V.
Estimate least_ratio(const Recipe& recipe, const Measured& all, const RealHead& head, double scale) {
  const Cells here = all.cells.input(head.input()).where({{"logit_scale", scale}});
  const Samples null = here.method("uniform").scalar("relative_output_error");
  const size_t candidates = all.plain.size() + all.transformed.size();
  const double rate = recipe.error_rate(all.heads.size() * all.scales.size() * candidates);
  std::vector<Estimate> ratios;
  for (const Specs& methods : {all.plain, all.transformed})
    for (const auto& method : methods)
      ratios.push_back(median_ratio(here.method(method).scalar("relative_output_error"), null, rate));
  return least_of(ratios);
}

// Counts the heads on which the best candidate errs less than the mean of V, at one factor of the logits.
void count_heads(Recipe& recipe, const Measured& all, double scale, const std::string& definition) {
  recipe.judge(
      {.text = fmt::format("By what factor the best random-feature estimator errs more or less than the mean of V, on "
                           "{} heads of this project's byte-level model with {}",
                           all.heads.size(), scale == 1 ? "their own logits" : fmt::format("logits times {}", scale)),
       .definition = definition + fmt::format(". One number a head, at logits times {}", scale),
       .threshold = "none is claimed. At 1 the best estimator errs as the mean of V, which looks at no key; the heads "
                    "surely below 1 are counted",
       .expected = Ruling::measured,
       .because = "no source gives the factor"},
      [=, &recipe] {
        std::vector<Comparison> ratios;
        for (const RealHead& head : all.heads) ratios.push_back({head.name(), least_ratio(recipe, all, head, scale)});
        return values_of(ratios, {1});
      });
}

void write(Recipe& recipe) {
  const Measured all = run(recipe);
  draw(recipe, all);
  const std::string definition = fmt::format(
      "of each estimator and head, the relative Frobenius error of the output over that of the mean of V, the median "
      "over {2} texts; of these the least over estimators, so that one estimator is the best for all texts. "
      "Estimators: positive, trigonometric, hyperbolic, OPRF and ADERF features, with inputs as they are and with "
      "inputs transformed in a way, learnt from another text, that leaves softmax attention unchanged; each with the "
      "most features that take no more FLOPs than softmax. {0} heads, causal mask, n = {1}, d = 64",
      all.heads.size(), all.n, all.replicates);
  recipe.judge(
      {.text = fmt::format("On each of {} heads of this project's byte-level model, some random-feature estimator errs "
                           "less than the mean of V",
                           all.heads.size()),
       .definition = definition + ". Of these numbers the greatest over heads is judged, for each factor of the "
                                  "logits. A factor fails only where, on some head, all estimators surely err more",
       .threshold = "1: the mean of V, which looks at no key",
       .expected = Ruling::open,
       .because = "by the closed forms the error grows as exp |q + k|^2 / m, so large logits are out of reach; "
                  "of small ones both errors shrink alike, and the number of features decides"},
      [=, &recipe] {
        std::vector<Region> regions;
        for (const double scale : all.scales) {
          std::vector<Estimate> of_heads;
          for (const RealHead& head : all.heads) of_heads.push_back(least_ratio(recipe, all, head, scale));
          regions.push_back({fmt::format("logits times {}", scale), {{"", greatest_of(of_heads)}}, scale});
        }
        return below_where(1, regions, "factor of the logits");
      });
  for (const double scale : all.scales) count_heads(recipe, all, scale, definition);
}

const bool registered = add(RecipeEntry{
    .text = {.name = "random-features-on-real-heads",
             .summary = "Random features on heads of a model, against the mean of V",
             .formula = "Do random features approximate the attention of a trained model better than the mean of V?",
             .reference = "Choromanski et al. 2020, arXiv:2009.14794; Likhosherstov et al. 2023, arXiv:2302.00787"},
    .write = write});

}  // namespace
}  // namespace attnbench::random_features_on_real_heads_recipe
