// Whether random features beat the mean of V on heads of models, over the temperature (the logits times
// logit_scale), with the transforms that leave softmax attention unchanged, at no more FLOPs than softmax.
#include <fmt/format.h>

#include "experiments/recipes/real_heads.hpp"
#include "harness/runner/match.hpp"

namespace attnbench::random_features_on_real_heads_recipe {
namespace {

const std::string plain = "transform=none", transformed = "transform=full,shift=mean";

// Every map, with the most features that cost no more FLOPs than softmax.
Specs candidates(const Shape& shape, const std::string& inputs) {
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

std::vector<RealHead> heads_of(const Recipe& recipe) {
  auto heads = recipe.sized<std::vector<RealHead>>({typical_head}, {dense_head, typical_head}, all_heads());
  for (const HeadModel* model : {&minilm, &whisper_encoder, &whisper_decoder}) {
    const auto captured = captured_heads_of(*model);
    const auto some =
        recipe.sized<std::vector<RealHead>>({captured.front()}, {captured.front(), captured.back()}, captured);
    heads.insert(heads.end(), some.begin(), some.end());
  }
  return heads;
}

struct Measured {
  Index n;
  std::vector<double> scales;
  std::vector<std::vector<RealHead>> models;
  std::vector<RealHead> heads;
  Cells cells;

  // Of these inputs, at the shape of that head.
  Specs methods(const RealHead& head, const std::string& inputs) const { return candidates(head.shape(n), inputs); }
};

Measured run(Recipe& recipe) {
  Measured all{.n = recipe.sized<Index>(256, 512, 1024),
               .scales = recipe.sized<std::vector<double>>({1, 0.03}, {1, 0.25, 0.03}, {1, 0.5, 0.25, 0.1, 0.03}),
               .models = by_model(heads_of(recipe)),
               .heads = heads_of(recipe),
               .cells = {}};
  RunRequest request{
      .experiment = "attention-error:matrix=false", .n = {all.n}, .replicates = recipe.sized<Index>(2, texts)};
  Specs scales;
  for (const double scale : all.scales) scales.push_back(fmt::format("{}", scale));
  request.sweep = {{"logit_scale", scales}};
  for (const auto& heads : all.models) {
    request.methods = all.methods(heads.front(), plain);
    for (const auto& method : all.methods(heads.front(), transformed)) request.methods.push_back(method);
    request.methods.push_back("uniform");
    all.cells = all.cells + run_on(recipe, request, heads);
  }
  return all;
}

void draw(Recipe& recipe, const Measured& all) {
  std::vector<Panel> panels;
  for (const auto& heads : all.models)
    for (const auto& [title, inputs] : {std::pair{"inputs as they are", plain}, {"inputs transformed", transformed}}) {
      Specs shown = all.methods(heads.front(), inputs);
      shown.push_back("uniform");
      Cells cells;
      for (const std::string& input : inputs_of(heads)) cells = cells + all.cells.input(input).methods(shown);
      panels.push_back({.title = fmt::format("{}, {}", heads.front().part(), title),
                        .cells = cells,
                        .x = {"logit_scale"},
                        .x_label = "factor of the logits",
                        .x_scale = "log10",
                        .y = "relative_output_error",
                        .y_label = "error of the output / that of the mean of V",
                        .y_scale = "log10",
                        .interval = "median",
                        .ratio_to = "uniform"});
    }
  recipe.figure("random-features-on-real-heads", "Random features on heads of models, against temperature",
                fmt::format("Each map with the most features that take no more FLOPs than softmax; m counts projection "
                            "vectors (trig and hyperbolic make two features of each). Frobenius error of the output "
                            "over that of the mean of V, median over heads, texts and draws: above 1, a method errs "
                            "more than the mean of V, which looks at no key. {}.",
                            heads_in_words(all.heads, all.n)),
                panels);
}

// The error of the best candidate over that of the mean of V.
Estimate least_ratio(const Recipe& recipe, const Measured& all, const RealHead& head, double scale) {
  const Cells here = all.cells.input(head.input()).where({{"logit_scale", scale}});
  const Samples null = here.method("uniform").scalar("relative_output_error");
  Specs methods = all.methods(head, plain);
  for (const auto& method : all.methods(head, transformed)) methods.push_back(method);
  const double rate = recipe.error_rate(all.heads.size() * all.scales.size() * methods.size());
  std::vector<Estimate> ratios;
  for (const auto& method : methods)
    ratios.push_back(median_ratio(here.method(method).scalar("relative_output_error"), null, rate));
  return least_of(ratios);
}

std::string definition_on(const std::vector<RealHead>& heads, Index n) {
  return "of each estimator and head, the relative Frobenius error of the output over that of the mean of V; of these "
         "the least over estimators, so that one estimator is the best for all texts and draws of a head. Estimators: "
         "positive, trigonometric, hyperbolic, OPRF and ADERF features, with inputs as they are and with inputs "
         "transformed in a way, learnt from another text, that leaves softmax attention unchanged; each with the most "
         "features that take no more FLOPs than softmax. " +
         heads_in_words(heads, n);
}

void judge_model(Recipe& recipe, const Measured& all, const std::vector<RealHead>& heads) {
  const bool own = heads.front().model == &byte_model;
  recipe.judge(
      {.text = fmt::format("On each of {} heads of {}, some random-feature estimator errs less than the mean of V",
                           heads.size(), own ? "this project's byte-level model" : heads.front().model->title),
       .definition = definition_on(heads, all.n) +
                     ". Of these numbers the greatest over heads is judged, for each factor of the logits. A factor "
                     "fails only where, on some head, all estimators surely err more",
       .threshold = "1: the mean of V, which looks at no key",
       .expected = Ruling::open,
       .because = "by the closed forms the error grows as exp |q + k|^2 / m, so large logits are out of reach; "
                  "of small ones both errors shrink alike, and the number of features decides"},
      [=, &recipe] {
        std::vector<Region> regions;
        for (const double scale : all.scales) {
          std::vector<Estimate> of_heads;
          for (const RealHead& head : heads) of_heads.push_back(least_ratio(recipe, all, head, scale));
          regions.push_back({fmt::format("logits times {}", scale), {{"", greatest_of(of_heads)}}, scale});
        }
        return below_where(1, regions, "factor of the logits");
      });
}

// Counts the heads on which the best candidate errs less than the mean of V, at one factor of the logits.
void count_heads(Recipe& recipe, const Measured& all, double scale) {
  recipe.judge(
      {.text = fmt::format("By what factor the best random-feature estimator errs more or less than the mean of V, on "
                           "heads of this project's byte-level model, MiniLM and Whisper with {}",
                           scale == 1 ? "their own logits" : fmt::format("logits times {}", scale)),
       .definition = definition_on(all.heads, all.n) + fmt::format(". One number a head, at logits times {}", scale),
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
  for (const auto& heads : all.models) judge_model(recipe, all, heads);
  for (const double scale : all.scales) count_heads(recipe, all, scale);
}

const bool registered = add(RecipeEntry{
    .text = {.name = "random-features-on-real-heads",
             .summary = "Random features on heads of models, against the mean of V",
             .formula = "Do random features approximate the attention of trained models better than the mean of V?",
             .reference = "Choromanski et al. 2020, arXiv:2009.14794; Likhosherstov et al. 2023, arXiv:2302.00787"},
    .write = write});

}  // namespace
}  // namespace attnbench::random_features_on_real_heads_recipe
