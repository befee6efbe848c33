// A training step of attention against sequence length: total time, the cost of the backward pass, and the rounding
// error in gradients when the backward pass subtracts keys from the state.
#include "experiments/recipes/growth.hpp"

namespace attnbench::training_step_recipe {
namespace {

const std::string streaming = "linear", subtracting = "linear:backward=subtract";

void draw(Recipe& recipe, const Cells& steps, const Cells& rounding) {
  const Panel time = time_panel("forward and backward", steps, "seconds per training step");
  Panel memory = time, share = time, error = time;
  memory.title = "memory beyond input, output and gradients";
  memory.y = "peak_bytes";
  memory.y_label = "peak memory in bytes";
  memory.slope = false;
  share.title = "backward over forward";
  share.y = "backward_over_forward";
  share.y_label = "time of backward / time of forward";
  share.y_scale = "linear";
  share.slope = false;
  error.title = "rounding of the gradients";
  error.cells = rounding;
  error.y = "gradient_error";
  error.y_label = "relative error of float gradients";
  error.slope = false;
  recipe.figure(
      "training-step", "A training step of causal attention",
      "One head, d = dv = 64, float, one thread, causal: medians over blocks, below right over 32 inputs, with "
      "distribution-free 95 % intervals; n^a is the exponent of the last three lengths. identity returns V: "
      "it is the least that a step can take. backward=subtract takes each key out of the last state again "
      "instead of streaming the states once more: its gradients lose digits as n grows.",
      {time, memory, share, error});
}

void write(Recipe& recipe) {
  const auto linear = recipe.sized<std::vector<std::string>>({"performer", "linear"}, {"performer", "linear"},
                                                             {"performer", "linear", "polynomial", "cosformer"});
  RunRequest request{.experiment = "training-step:" + turns(recipe),
                     .methods = linear,
                     .inputs = {"gaussian"},
                     .n = recipe.sized<std::vector<Index>>({64, 128}, {256, 512, 1024}, {512, 1024, 2048, 4096, 8192}),
                     .causal = true,
                     .precision = Precision::f32};
  request.methods.insert(request.methods.end(), {"softmax", "identity"});
  const Cells steps = recipe.run(request);
  request.experiment = "gradient-rounding";
  request.methods = {streaming, subtracting};
  request.n = recipe.sized<std::vector<Index>>({64, 128}, {256, 512}, {512, 2048, 8192});
  request.replicates = recipe.sized<Index>(2, 32);
  const Cells rounding = recipe.run(request);
  draw(recipe, steps, rounding);

  const std::string setting =
      "attention alone, one head, d = dv = 64, float, one thread, causal, medians over blocks of turns";
  const Index longest = length_of(by_length(steps.method(streaming)).back());
  recipe.judge(
      {.text = "On one CPU thread, the time of a training step of causal linear attention grows no faster than "
               "linearly in the sequence length",
       .source = "Katharopoulos et al. 2020, arXiv:2006.16236, section 3.3.1; Choromanski et al. 2020, "
                 "arXiv:2009.14794, section 4.1",
       .quotation = "The cumulative sum terms in equations 9, 13-15 are computed in linear time and require "
                    "constant memory with respect to the sequence length.",
       .paraphrase = "Choromanski et al.: in terms of L, the Performer reaches nearly linear time",
       .definition = "the factor by which a doubling of n multiplies the seconds of forward and backward, every "
                     "doubling judged, of Performer and of linear attention with 1 + elu (at full size also the "
                     "polynomial kernel of degree 2 and cosFormer), n = 256 to 1024 (at full size 512 to 8192); " +
                     setting +
                     ". Katharopoulos et al. derive linear time; Choromanski et al. time whole models on accelerators",
       .threshold = "every doubling multiplies the time by at most 2.3: 2 and the 15 % of the rule for growth",
       .because = "the operations are linear in n"},
      [=, &recipe] { return grows_as(recipe, linear_growth, curves_of(steps, linear)); });
  recipe.judge(
      {.text = "By what factor the backward pass of causal linear attention takes longer than its forward pass, on one "
               "CPU thread",
       .definition =
           fmt::format("seconds of the backward pass over those of the forward pass at n = {}, Performer and linear "
                       "attention with 1 + elu (at full size also the polynomial kernel of degree 2 and cosFormer); ",
                       longest) +
           setting,
       .threshold = "none: no source gives one; 2 and 3 for comparison",
       .expected = Ruling::measured,
       .because = "the products of states count 2 forwards and 5 backwards, since the states are streamed "
                  "again, a ratio of 2.5; features and chunks add to both"},
      [=, &recipe] {
        std::vector<Comparison> comparisons;
        for (const auto& method : linear) {
          const auto ratios = steps.method(method).n(longest).turns("backward_over_forward");
          comparisons.push_back({method, median_of(ratios, recipe.error_rate(linear.size()))});
        }
        return with_disturbances(values_of(comparisons, {2, 3}), curves_of(steps.n(longest), linear));
      });
  recipe.judge(
      {.text = "Float gradients of causal linear attention err less when the backward pass recomputes prefix states "
               "than when it subtracts keys from the last state",
       .definition = fmt::format(
           "relative Frobenius error of the float gradients of Q, K and V together against those in double, "
           "recomputing over subtracting, on the same {} normal inputs at n = {}, linear attention with 1 + elu, d = "
           "dv = 64; median of the ratios. The state of a position is the sum of feature(k) v^T over the keys up to "
           "it. Subtracting takes keys out of the last state one after the other, as google-research's published code "
           "does (performer/fast_attention/tensorflow/fast_attention.py, causal_numerator)",
           by_length(rounding.method(streaming)).back().all().front().replicates,
           length_of(by_length(rounding.method(streaming)).back())),
       .threshold = "1: equal errors",
       .because = "the last state is the largest one, and a difference of large sums keeps their rounding"},
      [=, &recipe] {
        const auto errors = [&](const std::string& method) {
          return by_length(rounding.method(method)).back().scalar("gradient_error");
        };
        return all_below(1, {{"", median_ratio(errors(streaming), errors(subtracting), recipe.error_rate(1))}});
      });
}

const bool registered =
    add(RecipeEntry{.text = {.name = "training-step",
                             .summary = "Time and gradients of a training step",
                             .formula = "Do forward and backward of linear attention take time linear in the sequence "
                                        "length, and what does the backward pass cost and round?",
                             .reference = "Katharopoulos et al. 2020, arXiv:2006.16236, Fig. 1 and section 3.3.1; "
                                          "Choromanski et al. 2020, arXiv:2009.14794, Fig. 3"},
                    .write = write});

}  // namespace
}  // namespace attnbench::training_step_recipe
