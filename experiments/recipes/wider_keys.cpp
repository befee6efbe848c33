// How near linear attention with exponentials of wider keys is to a Performer, and which elementwise map is nearest to
// softmax. A Performer of m features is exp(W x - |x|^2/2): keys W k of m dimensions lack the norm, which no linear
// layer gives.
#include <fmt/format.h>

#include "experiments/recipes/conventions.hpp"
#include "experiments/recipes/field.hpp"
#include "experiments/recipes/identity.hpp"
#include "experiments/recipes/real_heads.hpp"

namespace attnbench::wider_keys_recipe {
namespace {

const Specs scales{"gaussian:scale=0.25", "gaussian:scale=0.5", "gaussian", "gaussian:scale=2"};
const Specs others{"linear", "linear:features=relu", "linear:features=relu2"};
const std::string exponential = "linear:features=exp", by_layer = "wider-keys:norms=false",
                  error = "relative_output_error";

Specs under(const Convention& convention, Specs methods) {
  for (auto& method : methods) method = convention.of(method);
  return methods;
}

struct Runs {
  Cells sphere, layer_on_scales, layer_on_heads, scales, heads;
};

Index length_of(const Runs& runs) { return runs.sphere.all().front().asked.problem.shape.nk; }

Runs run(Recipe& recipe) {
  const RunRequest on_sphere{.experiment = by_layer,
                             .methods = {"performer:m=64"},
                             .inputs = {"sphere"},
                             .n = {recipe.sized<Index>(64, 128, 512)},
                             .causal = false,
                             .replicates = 2};
  RunRequest on_scales = on_sphere, activations = on_sphere;
  on_scales.inputs = scales;
  on_scales.replicates = recipe.sized<Index>(2, 32);
  RunRequest on_heads = on_scales;
  on_heads.causal = {};
  on_heads.replicates = recipe.sized<Index>(2, 20, texts);
  activations = on_scales;
  activations.experiment = "attention-error:matrix=false";
  activations.methods = {"uniform"};
  for (const Convention& convention : conventions)
    for (const auto& method : under(convention, {exponential, others[0], others[1], others[2]}))
      activations.methods.push_back(method);
  RunRequest activations_on_heads = on_heads;
  activations_on_heads.experiment = activations.experiment;
  activations_on_heads.methods = activations.methods;
  const auto heads = telling_heads_of_models(recipe);
  return {recipe.run(on_sphere), recipe.run(on_scales), run_on(recipe, on_heads, heads), recipe.run(activations),
          run_on(recipe, activations_on_heads, heads)};
}

void judge_layer(Recipe& recipe, const Runs& runs) {
  const Statement capacity{
      .source = "Su 2021, kexue.fm/archives/8338, section 简单推导",
      .quotation =
          "只要我们将q,k的输出维度从d维改为m维，然后配合e^x的激活函数，那么理论上它就有Performer的拟合能力，甚至更强 "
          "(If only we "
          "change the output dimension of q, k from d to m and use the activation e^x, then in theory it has "
          "the Performer's fitting power, or more)"};
  Statement exact = capacity, off = capacity;
  exact.text =
      "Where all keys have one norm, linear attention with exponentials of W q and W k is the Performer with the rows "
      "of W for random vectors";
  exact.definition =
      "|out' - out| / |out| (Frobenius), out' with features exp(W x) of queries and keys widened by W, out the "
      "Performer's with the same m = 64 random vectors W, on q and k of one norm, d = 64, no mask, every input. The "
      "source claims fitting power; this is one instance";
  exact.threshold = "1e-9: an identity, to rounding";
  exact.because = "the factor exp(-|k|^2/2) is then common to all keys, and the normalisation cancels it";
  recipe.judge(exact, [=] { return identity(runs.sphere, "distance", 1e-9); });
  off.text =
      "How far linear attention with exponentials of W q and W k is from the Performer with the rows of W for random "
      "vectors, on heads of " +
      three_models;
  const auto heads = telling_heads_of_models(recipe);
  off.definition =
      "|out' - out| / |out| (Frobenius), out' with features exp(W x) of queries and keys widened by W, out the "
      "Performer's exp(W x - |x|^2/2) with the same m = 64 random vectors W, which are drawn for each replicate. A "
      "linear layer gives W k and not the term -|k|^2/2 of the Performer. Fitting power after training is not "
      "tested. " +
      heads_in_words(heads, length_of(runs));
  off.threshold =
      "the source gives none; it assumes that |k|^2 does not fluctuate much. 0.1, 0.5 and 1 are there for the "
      "reader";
  off.expected = Ruling::measured;
  off.because = "it grows with the spread of |k|^2/2";
  const double rate = recipe.error_rate(heads.size());
  recipe.judge(off, [=] {
    std::vector<Comparison> comparisons;
    for (const RealHead& head : heads)
      comparisons.push_back({head.name(), median_of(runs.layer_on_heads.input(head.input()).scalar("distance"), rate)});
    return values_of(comparisons, {0.1, 0.5, 1});
  });
}

void judge_activations(Recipe& recipe, const Runs& runs, const Convention& convention) {
  const auto heads = telling_heads_of_models(recipe);
  std::vector<LawOrHead> inputs;
  for (const auto& scale : scales) inputs.push_back({scale, scale});
  inputs = laws_and_heads(inputs, heads);
  const double rate = recipe.error_rate(inputs.size() * others.size());
  recipe.judge(
      {.text = "Of 1 + elu, ReLU, ReLU^2 and exp of " + convention.name + ", exp is the nearest to softmax attention",
       .definition = fmt::format(
           "relative Frobenius error of the output of linear attention to that of softmax attention, with exp over "
           "that with 1 + elu (linear), ReLU (features=relu) and ReLU^2 (features=relu2); the statement holds on a law "
           "where all three ratios are below 1, and on a model where they are on each of its heads. Normal inputs of "
           "standard deviation 0.25 to 2 without a mask, n = {}, d = 64, medians over inputs. {}. That exp is the best "
           "activation after training (kexue.fm/archives/8338) is not tested",
           length_of(runs), heads_in_words(heads, length_of(runs))),
       .threshold = equal_errors,
       .expected = Ruling::open,
       .because = "nothing is known beforehand"},
      [=] {
        std::vector<Region> regions;
        for (const LawOrHead& input : inputs) {
          const Cells cells = (runs.scales + runs.heads).input(input.input);
          for (const auto& other : others)
            region(regions, input.part)
                .comparisons.push_back({input.within("over " + other),
                                        median_ratio(cells.method(convention.of(exponential)).scalar(error),
                                                     cells.method(convention.of(other)).scalar(error), rate)});
        }
        return errs_less_where(regions);
      });
}

void write(Recipe& recipe) {
  const Runs runs = run(recipe);
  std::vector<Panel> panels;
  for (const Convention& convention : conventions) {
    Specs drawn = under(convention, {exponential, others[0], others[1], others[2]});
    drawn.push_back("uniform");
    panels.push_back({.title = "maps of " + convention.name,
                      .cells = runs.scales.methods(drawn),
                      .x = {"scale"},
                      .x_label = "standard deviation of the entries of Q and K",
                      .x_scale = "log2",
                      .y = error,
                      .y_label = "|A'V - AV| / |AV|",
                      .y_scale = "log10"});
  }
  panels.push_back({.title = "exp of W x against a Performer",
                    .cells = runs.layer_on_scales,
                    .x = {"scale"},
                    .x_label = "standard deviation of the entries of Q and K",
                    .x_scale = "log2",
                    .y = "distance",
                    .y_label = "|out' - out| / |out|, out the Performer's",
                    .y_scale = "log10"});
  recipe.figure(
      "wider-keys", "Elementwise activations against exact softmax, and wider keys against a Performer",
      "Left and middle: error of the output of linear attention, uniform is the mean of V. Right: distance of "
      "linear attention with exponentials of W q and W k to the Performer with the same m = 64 vectors. Normal "
      "inputs, d = 64, bidirectional; means over 32 inputs with 95 % intervals.",
      panels);
  judge_layer(recipe, runs);
  for (const Convention& convention : conventions) judge_activations(recipe, runs, convention);
}

const bool registered = add(
    RecipeEntry{.text = {.name = "wider-keys",
                         .summary = "Wider keys with an elementwise activation, and which activation",
                         .formula = "Has linear attention with exponentials and keys of m dimensions what a Performer "
                                    "with m features has, and which activation is the nearest to softmax?",
                         .reference = "Su 2021, kexue.fm/archives/8338"},
                .write = write});

}  // namespace
}  // namespace attnbench::wider_keys_recipe
